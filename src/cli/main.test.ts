/** Tests both programs as processes whose standard error nobody reads. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';

/** Runs a program and closes its standard error before it can write to it. */
async function runUnread(program: string, words: readonly string[]): Promise<{ code: number; stdout: string }> {
  const file = join(import.meta.dirname, '..', program);
  const child = spawn(process.execPath, [file, ...words], { stdio: ['ignore', 'pipe', 'pipe'] });
  child.stderr.destroy();
  const [stdout, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  return { code, stdout };
}

test('virtctl continues if nobody reads its notes', async () => {
  const { code, stdout } = await runUnread('cli/main.ts', ['create', 'vm', '--volume-containerdisk=src:quay.io/a/b:c']);
  assert.equal(code, 0);
  assert.match(stdout, /^kind: VirtualMachine$/m);
});

test('selfsame keeps its exit code if nobody reads the error', async () => {
  assert.deepEqual(await runUnread('main.ts', ['up', '--bad']), { code: 2, stdout: '' });
});
