/** `selfsame tour` as a new user runs it: on its own plane, with a real guest and all steps; nothing is left behind. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { createClient } from '#client/rest-client.ts';
import { NAMESPACES } from '#kube/core-kinds.ts';
import { loadServerAccess, startServer, createTemporaryDir, openTransport } from '#test/support/server-process.ts';

const SELFSAME = join(import.meta.dirname, '../../selfsame');
const TIMEOUT_MS = 900_000;
const POLL_MS = 100;

interface TourOptions {
  /** The data directory of a running plane; without one the tour starts its own. */
  readonly dataDir?: string;
  readonly leaveAt?: RegExp;
  /** SIGINT unless set. */
  readonly by?: NodeJS.Signals;
  /** Called with the output so far. */
  readonly watch?: (output: string) => void;
}

interface TourResult {
  readonly code: number | null;
  readonly output: string;
  /** Files that the tour did not remove. */
  readonly left: readonly string[];
}

async function tour({ dataDir, leaveAt, by = 'SIGINT', watch }: TourOptions = {}): Promise<TourResult> {
  // A separate temporary directory, so that files of other tours are not taken for leftovers.
  const dir = mkdtempSync(join(tmpdir(), 'tour-'));
  const child = spawn(SELFSAME, ['tour', '--data-dir', dataDir ?? join(dir, 'no-plane-here')], {
    env: { ...process.env, TMPDIR: dir },
  });
  let output = '';
  let left = false;
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      watch?.(output);
      if (leaveAt === undefined || left || !leaveAt.test(output)) return;
      left = true;
      child.kill(by);
    });
  }
  const [code] = (await once(child, 'close')) as [number | null];
  if (by === 'SIGKILL') await waitUntilEmpty(dir);
  const files = readdirSync(dir);
  if (files.length === 0) rmdirSync(dir);
  return { code, output, left: files };
}

/** Waits until the plane of a killed tour has removed everything; the time limit of the test applies. */
async function waitUntilEmpty(dir: string): Promise<void> {
  while (readdirSync(dir).length > 0) await new Promise<void>((resolve) => void setTimeout(resolve, POLL_MS));
}

test('a complete tour ends with its verdict', { timeout: TIMEOUT_MS }, async () => {
  const { code, output, left } = await tour();
  assert.match(output, /Verdict: after 13 steps it is the selfsame machine/, output.slice(-2000));
  assert.equal(code, 0);
  assert.deepEqual(left, []);
});

test('a tour that is interrupted leaves nothing behind', { timeout: TIMEOUT_MS }, async () => {
  const { code, output, left } = await tour({ leaveAt: /\[2\/13\]/ });
  assert.match(output, /The tour was stopped; nothing is left behind/, output.slice(-2000));
  assert.equal(code, 1);
  assert.deepEqual(left, []);
});

test('a tour that is killed leaves nothing behind: its plane and its guest end', { timeout: TIMEOUT_MS }, async () => {
  const { code, left } = await tour({ leaveAt: /\[2\/13\]/, by: 'SIGKILL' });
  assert.equal(code, null);
  assert.deepEqual(left, []);
});

test(
  'a running plane is used and left as it was, and the verdict fails if the VM was changed meanwhile',
  { timeout: TIMEOUT_MS },
  async (t) => {
    const dataDir = join(createTemporaryDir(t), 'data');
    const server = await startServer(t, { dataDir, command: ['up'] });
    const client = createClient(openTransport(t, loadServerAccess(dataDir)));
    const uuid = '11111111-2222-4333-8444-555555555555';
    const patch = { spec: { template: { spec: { domain: { firmware: { uuid } } } } } };
    let changed: Promise<unknown> | undefined;
    const watch = (output: string) => {
      const [, namespace] = /Using namespace (\S+) on/.exec(output) ?? [];
      if (namespace === undefined || !output.includes('[2/13]')) return;
      // The guest sees the change after its next start, which is the third step.
      changed ??= client.patch(VIRTUAL_MACHINES, { namespace, name: 'selfsame' }, { type: 'merge', body: patch });
    };
    const { code, output, left } = await tour({ dataDir, watch });
    assert.deepEqual(left, []);
    await changed;
    assert.match(
      output,
      /Restart the VM: firmware uuid was "[0-9a-f-]+" and is "11111111-2222-4333-8444-555555555555"/,
      output.slice(-2000),
    );
    assert.match(output, /the uuid or a MAC address changed unasked/);
    assert.match(output, /Verdict: it is NOT the selfsame machine/);
    assert.equal(code, 1);
    const { items } = await client.list(NAMESPACES, {});
    assert.ok(!items.some(({ metadata }) => metadata.name.startsWith('selfsame-tour-')));
    await server.kill('SIGTERM');
  },
);
