/** The stop of the engine in one process: what its clients see, and that nothing is left behind. */
import assert from 'node:assert/strict';
import { get as httpsGet, Agent } from 'node:https';
import type { IncomingMessage } from 'node:http';
import { connect as connectTcp, type Socket } from 'node:net';
import { once } from 'node:events';
import { test } from 'node:test';
import { startEngine, type Engine } from '#engine/engine.ts';
import { systemClock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import { openTls, untilClosed } from '#test/https/raw-tls.ts';
import { sendHttp1Request, readHttp2Response, sendHttp2Request, openHttp2Session } from '#test/support/raw-https.ts';
import { loadServerAccess, createTemporaryDir, type Scope } from '#test/support/server-process.ts';

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const WATCH = '/api/v1/namespaces?watch=1';

function start(dataDir: string, port = 0): Promise<Engine> {
  return startEngine({ dataDir, host: '127.0.0.1', port, log: silentLog, clock: systemClock });
}

async function started(t: Scope) {
  const dataDir = createTemporaryDir(t);
  const engine = await start(dataDir);
  return { engine, dataDir, access: loadServerAccess(dataDir) };
}

test('stop ends a watch of HTTP/2 with the end of its stream, not with a reset, and closes idle connections', async (t) => {
  const { engine, access } = await started(t);
  const idle = openHttp2Session(t, access);
  assert.equal((await sendHttp2Request(idle, access, { path: '/livez' })).status, 200);
  const session = openHttp2Session(t, access);
  const watch = session.request({ ':path': WATCH });
  await once(watch, 'response');
  let failure: Error | undefined;
  let ended = false;
  watch.on('error', (error) => (failure = error));
  watch.on('end', () => (ended = true));
  watch.resume();
  const closed = Promise.all([session, idle, watch].map((one) => new Promise((resolve) => one.once('close', resolve))));
  await engine.stop();
  await closed;
  const { aborted, rstCode } = watch;
  assert.deepEqual(
    { failure, ended, aborted, rstCode },
    { failure: undefined, ended: true, aborted: false, rstCode: 0 },
  );
});

test('stop ends a watch of HTTP/1.1 with its last chunk, and closes kept connections', async (t) => {
  const { engine, access } = await started(t);
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const freed = once(agent, 'free');
  assert.equal((await sendHttp1Request(access, { path: '/livez', agent })).status, 200);
  const [kept] = (await freed) as [Socket];
  const { certificateAuthority: ca, clientCertificate: cert, clientKey: key } = access;
  const answer = await new Promise<IncomingMessage>((resolve) => {
    httpsGet(`${access.server}${WATCH}`, { ca, cert, key, agent: false }, resolve);
  });
  answer.on('error', () => {});
  answer.resume();
  const closed = Promise.all([kept, answer].map((one) => new Promise((resolve) => one.once('close', resolve))));
  await engine.stop();
  await closed;
  assert.ok(answer.complete);
});

test('stop answers a running request of HTTP/2', async (t) => {
  const { engine, access } = await started(t);
  const session = openHttp2Session(t, access);
  const stream = session.request({
    ':method': 'POST',
    ':path': CONFIG_MAPS,
    'content-type': 'application/json',
  });
  const answer = readHttp2Response(stream);
  // Requests arrive in order: the answer to the second shows that the server has the first.
  assert.equal((await sendHttp2Request(session, access, { path: '/livez' })).status, 200);
  const stopped = engine.stop();
  stream.end(JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'late' } }));
  assert.equal((await answer).status, 201);
  await stopped;
});

test('stop answers a running request of HTTP/1.1', async (t) => {
  const { engine, access } = await started(t);
  const socket = await openTls(access, 'http/1.1');
  const body = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'late' } });
  const head = `POST ${CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
  const received = untilClosed(socket);
  // The answer 100 Continue shows that the server has the head and waits for the body.
  socket.write(head.replace('\r\n\r\n', '\r\nExpect: 100-continue\r\n\r\n'));
  await once(socket, 'data');
  const stopped = engine.stop();
  socket.write(body);
  await stopped;
  assert.match(await received, /HTTP\/1\.1 201 Created/);
});

test('after a stop, or a start that failed, port and data directory are free again', async (t) => {
  const { engine, dataDir, access } = await started(t);
  const port = Number(new URL(engine.url).port);
  const other = createTemporaryDir(t);
  await assert.rejects(start(other, port), { code: 'EADDRINUSE', syscall: 'listen' });
  assert.equal((await sendHttp1Request(access, { path: '/livez' })).text, 'ok', 'the first engine keeps running');
  await engine.stop();
  await assert.rejects(sendHttp1Request(access, { path: '/livez' }), { code: 'ECONNREFUSED' });

  const again = await start(dataDir, port);
  const second = await start(other);
  assert.equal(
    (await sendHttp1Request(access, { path: '/api/v1/namespaces' })).status,
    200,
    'the old access still works',
  );
  await again.stop();
  await second.stop();
});

test('a second engine on the same data directory is refused', async (t) => {
  const { engine, dataDir } = await started(t);
  await assert.rejects(start(dataDir), { name: 'StoreUnavailableError', message: /another process uses it/ });
  await engine.stop();
});

test('stop does not wait for a connection that never began its handshake', async (t) => {
  const { engine, access } = await started(t);
  const { hostname, port } = new URL(access.server);
  const mute = connectTcp(Number(port), hostname);
  t.after(() => void mute.destroy());
  await once(mute, 'connect');
  // The answer to a later request shows that the server has accepted the connection.
  assert.equal((await sendHttp1Request(access, { path: '/livez' })).status, 200);
  const closed = once(mute, 'close');
  await engine.stop();
  await closed;
});
