import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ensurePki } from '#engine/auth/certificates.ts';
import { systemClock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import { admitNode } from '#plane/embedded/admit-node.ts';
import { nodeDirOf, sharedDirOf } from '#plane/node/node-dir.ts';
import { startNodeProgram } from '#plane/node/node-program.ts';

test('the start of a node that waits for the API can be aborted', { timeout: 10_000 }, async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'selfsame-node-program-'));
  t.after(() => rmSync(dataDir, { recursive: true }));
  const now = () => systemClock.now();
  const pki = await ensurePki({ dir: join(dataDir, 'pki'), hosts: ['localhost'], now, log: silentLog });
  const silent = createServer((socket) => socket.on('error', () => undefined)).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  t.after(() => silent.close());
  const { port } = silent.address() as AddressInfo;
  await admitNode(dataDir, 'node-1', { pki, url: `https://127.0.0.1:${port}` });
  const leaving = new AbortController();
  const program = startNodeProgram({
    ...{ name: 'node-1', nodeDir: nodeDirOf(dataDir, 'node-1'), sharedDir: sharedDirOf(dataDir) },
    ...{ hypervisor: 'fake', accel: 'tcg', guestDir: join(dataDir, 'guest'), isRoot: false },
    ...{ program: [process.execPath], clock: systemClock, log: silentLog, signal: leaving.signal },
  });
  await once(silent, 'connection');
  leaving.abort();
  await assert.rejects(program, /the informer has stopped/);
});
