/**
 * Defects that the tests of this folder found in src/. Each test names the place; when the defect is fixed, the test
 * moves to the file that it belongs to.
 */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { apiServerOf, clientIdentityOf } from '#client/api-server.ts';
import { startEngine } from '#engine/engine.ts';
import { systemClock } from '#lib/clock.ts';
import { Http2Connections } from '#lib/https/http2-connections.ts';
import { silentLog } from '#lib/log.ts';
import { loadServerAccess, createTemporaryDir, type Scope } from '#test/support/server-process.ts';

async function started(t: Scope) {
  const dataDir = createTemporaryDir(t);
  const engine = await startEngine({ dataDir, host: '127.0.0.1', port: 0, log: silentLog, clock: systemClock });
  return { engine, access: loadServerAccess(dataDir) };
}

// src/lib/https/http2-exchange.ts: http2Body iterates over a stream that may be `closed` already, with its data unread.
test('the client can read an answer that was complete before the read began', async (t) => {
  const { engine, access } = await started(t);
  t.after(() => void engine.stop());
  const connections = new Http2Connections({
    server: apiServerOf(access).server,
    identity: clientIdentityOf(access),
    clock: systemClock,
  });
  t.after(() => connections.close());
  const ask = (path: string) =>
    connections.exchange({ method: 'GET', path, headers: {}, body: undefined, signal: new AbortController().signal });
  const first = await ask('/livez');
  // On one connection, earlier answers have arrived when a later answer is complete.
  assert.match(await text(Readable.from((await ask('/version')).body)), /gitVersion/);
  assert.equal(await text(Readable.from(first.body)), 'ok');
});
