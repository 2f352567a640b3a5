/** `selfsame tour` as a new user runs it: a plane of its own, a real guest, ten stations, nothing left behind. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

const SELFSAME = join(import.meta.dirname, '../../selfsame');
const TIMEOUT_MS = 900_000;

function tour({ leaveAt }: { leaveAt?: RegExp } = {}): Promise<{ code: number | null; said: string }> {
  const child = spawn(SELFSAME, ['tour', '--data-dir', join(tmpdir(), 'selfsame-no-plane-here')]);
  let said = '';
  let left = false;
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (leaveAt === undefined || left || !leaveAt.test(said)) return;
      left = true;
      child.kill('SIGINT');
    });
  }
  return new Promise((resolve) => void child.on('close', (code) => resolve({ code, said })));
}

const leftOvers = () => readdirSync(tmpdir()).filter((name) => name.startsWith('selfsame-tour-'));

test('the tour ends with its verdict', { timeout: TIMEOUT_MS }, async () => {
  const { code, said } = await tour();
  assert.match(said, /Verdict: after 10 stations it is the selfsame machine/, said.slice(-2000));
  assert.equal(code, 0);
  assert.deepEqual(leftOvers(), []);
});

test('who leaves leaves nothing', { timeout: TIMEOUT_MS }, async () => {
  const { code, said } = await tour({ leaveAt: /\[2\/10\]/ });
  assert.match(said, /The tour was left; nothing of it is left behind/, said.slice(-2000));
  assert.equal(code, 1);
  assert.deepEqual(leftOvers(), []);
});
