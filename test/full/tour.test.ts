/** `selfsame tour` as a new user runs it: on its own plane, with a real guest and all steps, and with nothing left behind. */
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
import { kubeconfigAccess, startServer, temporaryDir, transportTo } from '#test/support/server-process.ts';

const SELFSAME = join(import.meta.dirname, '../../selfsame');
const TIMEOUT_MS = 900_000;
const LOOK_AGAIN_MS = 100;

interface Walk {
  /** That of a plane that runs; without one the tour starts its own. */
  readonly dataDir?: string;
  readonly leaveAt?: RegExp;
  /** SIGINT unless set. */
  readonly by?: NodeJS.Signals;
  /** Is told what was said so far. */
  readonly watch?: (said: string) => void;
}

interface Walked {
  readonly code: number | null;
  readonly said: string;
  /** Files that it made and did not remove. */
  readonly left: readonly string[];
}

async function tour({ dataDir, leaveAt, by = 'SIGINT', watch }: Walk = {}): Promise<Walked> {
  // Its own, so that nobody else's tour is taken for a leftover of this one.
  const dir = mkdtempSync(join(tmpdir(), 'tour-'));
  const child = spawn(SELFSAME, ['tour', '--data-dir', dataDir ?? join(dir, 'no-plane-here')], {
    env: { ...process.env, TMPDIR: dir },
  });
  let said = '';
  let left = false;
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      watch?.(said);
      if (leaveAt === undefined || left || !leaveAt.test(said)) return;
      left = true;
      child.kill(by);
    });
  }
  const [code] = (await once(child, 'close')) as [number | null];
  if (by === 'SIGKILL') await isEmpty(dir);
  const files = readdirSync(dir);
  if (files.length === 0) rmdirSync(dir);
  return { code, said, left: files };
}

/** What a killed tour leaves is cleared by its plane, in a moment; the time limit of the test ends the waiting. */
async function isEmpty(dir: string): Promise<void> {
  while (readdirSync(dir).length > 0) await new Promise<void>((resolve) => void setTimeout(resolve, LOOK_AGAIN_MS));
}

test('the tour ends with its verdict', { timeout: TIMEOUT_MS }, async () => {
  const { code, said, left } = await tour();
  assert.match(said, /Verdict: after 13 steps it is the selfsame machine/, said.slice(-2000));
  assert.equal(code, 0);
  assert.deepEqual(left, []);
});

test('who leaves leaves nothing', { timeout: TIMEOUT_MS }, async () => {
  const { code, said, left } = await tour({ leaveAt: /\[2\/13\]/ });
  assert.match(said, /The tour was stopped; nothing is left behind/, said.slice(-2000));
  assert.equal(code, 1);
  assert.deepEqual(left, []);
});

test(
  'who is killed leaves nothing either: the plane and the guest end with the tour',
  { timeout: TIMEOUT_MS },
  async () => {
    const { code, left } = await tour({ leaveAt: /\[2\/13\]/, by: 'SIGKILL' });
    assert.equal(code, null);
    assert.deepEqual(left, []);
  },
);

test(
  'a plane that runs is used and left as it was, and the verdict fails where somebody meddles',
  { timeout: TIMEOUT_MS },
  async (t) => {
    const dataDir = join(temporaryDir(t), 'data');
    const server = await startServer(t, { dataDir, command: ['up'] });
    const client = createClient(transportTo(t, kubeconfigAccess(dataDir)));
    const uuid = '11111111-2222-4333-8444-555555555555';
    const patch = { spec: { template: { spec: { domain: { firmware: { uuid } } } } } };
    let meddled: Promise<unknown> | undefined;
    const watch = (said: string) => {
      const [, namespace] = /Using namespace (\S+) on/.exec(said) ?? [];
      if (namespace === undefined || !said.includes('[2/13]')) return;
      // The guest sees it from its next start on, which is the third station.
      meddled ??= client.patch(VIRTUAL_MACHINES, { namespace, name: 'selfsame' }, { type: 'merge', body: patch });
    };
    const { code, said, left } = await tour({ dataDir, watch });
    assert.deepEqual(left, []);
    await meddled;
    assert.match(
      said,
      /Restart the VM: firmware uuid was "[0-9a-f-]+" and is "11111111-2222-4333-8444-555555555555"/,
      said.slice(-2000),
    );
    assert.match(said, /the uuid or a MAC address changed unasked/);
    assert.match(said, /Verdict: it is NOT the selfsame machine/);
    assert.equal(code, 1);
    const { items } = await client.list(NAMESPACES, {});
    assert.ok(!items.some(({ metadata }) => metadata.name.startsWith('selfsame-tour-')));
    await server.kill('SIGTERM');
  },
);
