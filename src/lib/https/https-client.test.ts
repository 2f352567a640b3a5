import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import { systemClock, type Clock } from '#lib/clock.ts';
import { Http2Connections } from '#lib/https/http2-connections.ts';
import { HttpsClient, type HttpsRequest } from '#lib/https/https-client.ts';
import type { ClientIdentity } from '#lib/https/client-identity.ts';
import { readBody, readBodyStart, readBodyWithin } from '#lib/https/read-body.ts';
import { issue, makeAuthority } from '#lib/pki/authority.ts';

const validity = { nowMs: Date.now(), lifetimeMs: 3_600_000 };
const authority = makeAuthority({ commonName: 'tests' }, validity);
const serving = issue(authority, {
  subject: { commonName: 'server' },
  purpose: { kind: 'server', hosts: ['127.0.0.1', 'named.example'] },
  ...validity,
});

function identityOf(commonName: string): ClientIdentity {
  const { certPem: cert, keyPem: key } = issue(authority, {
    subject: { commonName },
    purpose: { kind: 'client' },
    ...validity,
  });
  return { ca: authority.pem, cert, key };
}
const ALICE = identityOf('alice');

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

interface Scene {
  readonly server: Server;
  readonly client: HttpsClient;
  readonly connections: () => number;
  send(request?: Partial<HttpsRequest>, identity?: ClientIdentity): Promise<IncomingMessage>;
}

async function aScene(t: TestContext, handler: Handler, clock: Clock = systemClock): Promise<Scene> {
  const tls = { cert: serving.certPem, key: serving.keyPem, ca: authority.pem, requestCert: true };
  const server = createServer(tls, handler);
  let connections = 0;
  server.on('secureConnection', () => connections++);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = new HttpsClient({ maxSockets: 10, maxKept: 2, clock });
  t.after(() => {
    client.close();
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return {
    server,
    client,
    connections: () => connections,
    async send(request = {}, identity = ALICE) {
      const whole: HttpsRequest = { method: 'GET', path: '/', headers: {}, ...request };
      return (await client.send({ host: '127.0.0.1', port }, identity, whole)).incoming;
    },
  };
}

const sayName: Handler = ({ socket }, response) =>
  void response.end((socket as TLSSocket).getPeerCertificate().subject.CN);

const reuse: Record<string, { connection: HttpsRequest['connection']; want: number }> = {
  'has its own connection': { connection: 'fresh', want: 3 },
  'uses a kept connection': { connection: 'kept', want: 1 },
  'uses a kept connection if it is repeatable': { connection: 'repeatable', want: 1 },
};
for (const [sentence, { connection, want }] of Object.entries(reuse)) {
  test(`a request ${sentence}`, async (t) => {
    const scene = await aScene(t, sayName);
    for (let i = 0; i < 3; i++) assert.equal(await text(await scene.send({ connection })), 'alice');
    assert.equal(scene.connections(), want);
  });
}

test('only a repeatable request is sent again if the server closes its kept connection', async (t) => {
  let closing = false;
  const scene = await aScene(t, (request, response) => {
    if (!closing) return void response.end('ok');
    closing = false;
    request.socket.destroy();
  });
  for (const connection of ['kept', 'repeatable'] as const) {
    await text(await scene.send({ connection }));
    closing = true;
    const again = scene.send({ connection });
    if (connection === 'kept') await assert.rejects(again, { code: 'ECONNRESET' });
    else assert.equal(await text(await again), 'ok');
  }
});

test('another identity gets its own connections, and those of the earlier one end', async (t) => {
  const scene = await aScene(t, sayName);
  const names: string[] = [];
  for (const identity of [ALICE, { ...ALICE }, identityOf('bob'), ALICE]) {
    names.push(await text(await scene.send({ connection: 'kept' }, identity)));
  }
  assert.deepEqual(names, ['alice', 'alice', 'bob', 'alice']);
  assert.equal(scene.connections(), 3);
});

test('a retired client completes its requests and keeps no connection', async (t) => {
  const responses: ServerResponse[] = [];
  const scene = await aScene(t, (_, response) => void responses.push(response.writeHead(200)));
  scene.server.on('request', (_, response: ServerResponse) => response.flushHeaders());
  const pending = await scene.send({ connection: 'kept' });
  const closed = once(pending.socket, 'close');
  scene.client.retire();
  responses[0]!.end('late');
  assert.equal(await text(pending), 'late');
  await closed;
  const later = await scene.send({ connection: 'kept' });
  const laterClosed = once(later.socket, 'close');
  responses[1]!.end();
  await text(later);
  await laterClosed;
});

test('a body can be a stream', async (t) => {
  const scene = await aScene(t, (request, response) => void request.pipe(response));
  const body = Readable.from([Buffer.from('a'), Buffer.from('b')]);
  assert.equal(await text(await scene.send({ method: 'POST', body })), 'ab');
});

test('the certificate is checked for the server name, and by the caller', async (t) => {
  const scene = await aScene(t, sayName);
  const { port } = scene.server.address() as AddressInfo;
  const request: HttpsRequest = { method: 'GET', path: '/', headers: {} };
  const send = (serverName: string, more: Partial<HttpsRequest> = {}, identity: ClientIdentity = ALICE) =>
    scene.client.send({ host: '127.0.0.1', port, serverName }, identity, { ...request, ...more });
  await send('named.example');
  await assert.rejects(send('other.example'), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  await send('other.example', {}, { ...ALICE, insecure: true });
  const checkPeer: HttpsRequest['checkPeer'] = ({ subject }) => new Error(`not ${String(subject.CN)}`);
  await assert.rejects(send('named.example', { checkPeer }), { message: 'not server' });
  await assert.rejects(send('named.example', {}, { ca: 'nonsense' }), { name: 'ClientIdentityError' });
  await assert.rejects(send('named.example', {}, { ...ALICE, key: 'nonsense' }), { name: 'ClientIdentityError' });
});

const addresses: Record<string, { serverName: string; isValid: boolean }> = {
  'a server name may be an address': { serverName: '127.0.0.1', isValid: true },
  'a server name that is another address is not replaced by the host': { serverName: '127.0.0.2', isValid: false },
};
for (const [sentence, { serverName, isValid }] of Object.entries(addresses)) {
  test(sentence, async (t) => {
    const scene = await aScene(t, sayName);
    const { port } = scene.server.address() as AddressInfo;
    const hosts = isValid ? ['127.0.0.1', 'localhost'] : ['127.0.0.1'];
    for (const host of hosts) {
      const server = { host, port, serverName };
      const http2 = new Http2Connections({ server, identity: ALICE, clock: systemClock });
      t.after(() => http2.close());
      const { signal } = new AbortController();
      const webSocket = { path: '/', headers: {}, protocols: [], headersTimeoutMs: 10_000 };
      const requests = [
        () => scene.client.send(server, ALICE, { method: 'GET', path: '/', headers: {} }),
        () => http2.exchange({ method: 'GET', path: '/', headers: {}, body: undefined, signal }),
        () => scene.client.openWebSocket(server, ALICE, webSocket),
      ];
      for (const request of requests) {
        if (isValid) await request();
        else await assert.rejects(request(), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
      }
    }
  });
}

test('an upgrade that was not requested is an error', async (t) => {
  const scene = await aScene(t, ({ socket }) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n');
  });
  for (const connection of ['fresh', 'repeatable'] as const) {
    await assert.rejects(scene.send({ connection }), { name: 'HttpsError', message: /switched protocols/ });
  }
});

test('an upgrade yields the connection, and a refused one a response', async (t) => {
  const scene = await aScene(t, (_, response) => void response.writeHead(409).end('busy'));
  const { port } = scene.server.address() as AddressInfo;
  const headers = { Connection: 'Upgrade', Upgrade: 'echo' };
  const open = () =>
    scene.client.send({ host: '127.0.0.1', port }, ALICE, { method: 'GET', path: '/', headers, upgrade: true });
  const refused = await open();
  assert.deepEqual([refused.incoming.statusCode, await text(refused.incoming)], [409, 'busy']);
  scene.server.on('upgrade', (_, socket: Socket) => {
    socket.on('error', () => {});
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n');
    socket.pipe(socket);
  });
  const upgraded = await open();
  assert.ok('connection' in upgraded);
  upgraded.connection.end('hello');
  assert.equal(await text(upgraded.connection), 'hello');
});

/** A clock whose timers fire by their duration. */
function timerClock(): { clock: Clock; fire(ms: number): void } {
  const timers = new Map<number, () => void>();
  const after: Clock['after'] = (ms, fn) => {
    timers.set(ms, fn);
    return () => void timers.delete(ms);
  };
  return { clock: { ...systemClock, after }, fire: (ms) => timers.get(ms)!() };
}

test('connecting, the response and the body have their own time limits', async (t) => {
  const { clock, fire } = timerClock();
  const silent = createTcpServer((socket) => socket.on('error', () => {}));
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  t.after(() => silent.close());
  const accepted = once(silent, 'connection');
  const { promise: asked, resolve: onRequest } = Promise.withResolvers<ServerResponse>();
  const scene = await aScene(t, (_, response) => onRequest(response), clock);
  const request: HttpsRequest = {
    method: 'GET',
    path: '/',
    headers: {},
    connectTimeoutMs: 1000,
    headersTimeoutMs: 2000,
  };
  const { port } = silent.address() as AddressInfo;
  const connecting = scene.client.send({ host: '127.0.0.1', port }, ALICE, request);
  const [socket] = (await accepted) as [Socket];
  fire(1000);
  await assert.rejects(connecting, {
    name: 'HttpsTimeoutError',
    phase: 'connect',
    message: /no connection within 1 s/,
  });
  socket.destroy();
  const waiting = scene.send(request);
  const response = await asked;
  assert.throws(() => fire(1000), 'the limit for connecting no longer applies');
  fire(2000);
  await assert.rejects(waiting, { name: 'HttpsTimeoutError', phase: 'headers', message: /no response within 2 s/ });
  response.destroy();
});

test('a body is bounded in size and time', async (t) => {
  const { clock, fire } = timerClock();
  const scene = await aScene(t, ({ url }, response) => {
    response.write('12345');
    if (url === '/whole') response.end('67890');
  });
  const get = (path: string) => scene.send({ path });
  assert.equal((await readBody(await get('/whole'), 10)).toString(), '1234567890');
  await assert.rejects(readBody(await get('/whole'), 9), { message: 'the response is larger than 9 bytes' });
  const limits = { maxBytes: 4, timeoutMs: 3000, clock };
  assert.equal((await readBodyStart(await get('/'), limits)).slice(0, 4), '1234');
  for (const read of [readBodyWithin, readBodyStart]) {
    const late = read(await get('/'), { ...limits, maxBytes: 100 });
    fire(3000);
    await assert.rejects(late, { name: 'HttpsTimeoutError', phase: 'body' });
  }
});

test('a body that breaks off is an error', async (t) => {
  const scene = await aScene(t, (_, response) => {
    response.writeHead(200, { 'content-length': '10' }).write('12345');
    setImmediate(() => response.destroy());
  });
  await assert.rejects(readBody(await scene.send(), 100), { code: 'ECONNRESET' });
});
