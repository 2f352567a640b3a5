/** Malformed requests affect only their own connection. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { test } from 'node:test';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { frame, frameTypes, getHeaders, greeting, headersFrame, openTls, untilClosed } from '#test/https/raw-tls.ts';
import { sendHttp1Request, sendHttp2Request, openHttp2Session, withoutCredentials } from '#test/support/raw-https.ts';
import { startServer, createTemporaryDir } from '#test/support/server-process.ts';

type Attack = (access: ClusterAccess) => Promise<void>;

async function sendPlain(access: ClusterAccess, bytes: Buffer | string): Promise<void> {
  const { hostname, port } = new URL(access.server);
  const socket = connectTcp(Number(port), hostname);
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.resume().write(bytes);
  await new Promise((resolve) => socket.once('close', resolve));
}

/** Sends everything in one write, so that the server gets it at once; then reads until the server closes. */
async function sendHttp2(access: ClusterAccess, ...frames: Buffer[]): Promise<void> {
  const socket = await openTls(access, 'h2');
  socket.write(Buffer.concat([greeting, ...frames]));
  await untilClosed(socket);
}

async function sendHttp2AndLeave(access: ClusterAccess, ...frames: Buffer[]): Promise<void> {
  const socket = await openTls(access, 'h2');
  await new Promise((resolve) => socket.write(Buffer.concat([greeting, ...frames]), resolve));
  socket.destroy();
}

async function answerToHttp1(access: ClusterAccess, text: string): Promise<string> {
  const socket = await openTls(access, 'http/1.1');
  socket.write(text);
  return await untilClosed(socket);
}

const many = <T>(count: number, make: (index: number) => T) => Array.from({ length: count }, (_, index) => make(index));
const WATCH = '/api/v1/configmaps?watch=1';
const CREATE = { ...getHeaders('/api/v1/namespaces/default/configmaps'), ':method': 'POST' };
// Data frames belong to a stream; stream 0 is the connection itself.
const PROTOCOL_ERROR = frame(frameTypes.data, { payload: Buffer.from('x') });

const http2Attacks: Record<string, Attack> = {
  'a request and a protocol error in one piece': (access) =>
    sendHttp2(access, headersFrame(1, getHeaders('/api/v1/namespaces')), PROTOCOL_ERROR),
  'a watch and a protocol error in one piece': (access) =>
    sendHttp2(access, headersFrame(1, getHeaders(WATCH)), PROTOCOL_ERROR),
  'a request that is reset at once': (access) =>
    sendHttp2AndLeave(
      access,
      ...many(50, (index) =>
        Buffer.concat([
          headersFrame(2 * index + 1, getHeaders('/api/v1/namespaces')),
          frame(frameTypes.rstStream, { stream: 2 * index + 1, payload: Buffer.from([0, 0, 0, 8]) }),
        ]),
      ),
    ),
  'watches that are left at once': (access) =>
    sendHttp2AndLeave(access, ...many(50, (index) => headersFrame(2 * index + 1, getHeaders(WATCH)))),
  'a watch of a future revision that is left at once': (access) =>
    sendHttp2AndLeave(access, headersFrame(1, getHeaders(`${WATCH}&resourceVersion=1000000`))),
  'a request and a flood of settings in one piece': (access) =>
    sendHttp2(
      access,
      headersFrame(1, getHeaders('/api/v1/namespaces')),
      ...many(1200, () => frame(frameTypes.settings)),
    ),
  'a request and a flood of pings in one piece': (access) =>
    sendHttp2(
      access,
      headersFrame(1, getHeaders('/api/v1/namespaces')),
      ...many(2000, () => frame(frameTypes.ping, { payload: Buffer.alloc(8) })),
    ),
  'a request and a flood of invalid frames in one piece': (access) =>
    sendHttp2(
      access,
      headersFrame(1, getHeaders('/api/v1/namespaces')),
      ...many(1200, () => frame(frameTypes.rstStream, { stream: 0, payload: Buffer.alloc(4) })),
    ),
  'half a body': (access) =>
    sendHttp2AndLeave(
      access,
      headersFrame(1, CREATE, { open: true }),
      frame(frameTypes.data, { stream: 1, payload: Buffer.from('{"kind":') }),
    ),
  'a request without a path': (access) =>
    sendHttp2(access, headersFrame(1, { ':method': 'GET', ':scheme': 'https' }), PROTOCOL_ERROR),
  CONNECT: (access) =>
    sendHttp2(access, headersFrame(1, { ':method': 'CONNECT', ':authority': 'localhost:22' }), PROTOCOL_ERROR),
  'a frame that is longer than allowed': (access) =>
    sendHttp2(access, frame(frameTypes.data, { stream: 1, payload: Buffer.alloc(100_000) })),
  'garbage after the greeting': (access) => sendHttp2(access, Buffer.alloc(5000, 0xff)),
  'headers that cannot be decompressed': (access) =>
    sendHttp2(access, frame(frameTypes.headers, { flags: 5, stream: 1, payload: Buffer.alloc(200, 0xff) })),
};

const otherAttacks: Record<string, Attack> = {
  'garbage instead of TLS': (access) => sendPlain(access, Buffer.alloc(3000, 0x5a)),
  'plain HTTP instead of TLS': (access) => sendPlain(access, 'GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n'),
  'a TLS handshake that breaks off': async (access) => {
    const { hostname, port } = new URL(access.server);
    const socket = connectTcp(Number(port), hostname);
    await once(socket, 'connect');
    await new Promise((resolve) => socket.write(Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc]), resolve));
    socket.destroy();
  },
  'garbage instead of HTTP/1.1': async (access) =>
    void (await answerToHttp1(access, `${'\0\xff'.repeat(100)}\r\n\r\n`)),
  'a method that does not exist': async (access) =>
    void (await answerToHttp1(access, 'FROB / HTTP/1.1\r\nHost: x\r\n\r\n')),
  'two lengths': async (access) => {
    const head = 'POST /version HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n';
    assert.doesNotMatch(
      await answerToHttp1(access, `${head}0\r\n\r\nGET /livez HTTP/1.1\r\nHost: x\r\n\r\n`),
      /200 OK/,
    );
  },
  'headers larger than the limit': async (access) => {
    const answer = await answerToHttp1(
      access,
      `GET /livez HTTP/1.1\r\nHost: x\r\nX-Large: ${'x'.repeat(200_000)}\r\n\r\n`,
    );
    assert.doesNotMatch(answer, /200 OK/);
  },
  'a body that ends too early': async (access) => {
    const socket = await openTls(access, 'http/1.1');
    const head = 'POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nContent-Length: 400\r\n\r\n{"kind"';
    await new Promise((resolve) => socket.write(head, resolve));
    socket.destroy();
  },
  'CONNECT over HTTP/1.1': async (access) =>
    void (await answerToHttp1(access, 'CONNECT localhost:22 HTTP/1.1\r\nHost: x\r\n\r\n')),
  'a watch over HTTP/1.1 that is left at once': async (access) => {
    const socket = await openTls(access, 'http/1.1');
    await new Promise((resolve) => socket.write(`GET ${WATCH} HTTP/1.1\r\nHost: x\r\n\r\n`, resolve));
    socket.destroy();
  },
};

for (const [protocol, attacks] of Object.entries({ 'HTTP/2': http2Attacks, other: otherAttacks })) {
  test(`malformed requests do not affect other clients (${protocol})`, async (t) => {
    let server = await startServer(t, { dataDir: createTemporaryDir(t) });
    for (const [title, attack] of Object.entries(attacks)) {
      await t.test(title, async (t) => {
        const access = server.access();
        const session = openHttp2Session(t, access);
        const watch = session.request({ ':path': `${WATCH}&resourceVersion=0` });
        await once(watch, 'response');
        const crashed = server.exited.then(({ stderr }) => assert.fail(`the server ended: ${stderr}`));
        crashed.catch(() => {});
        try {
          // Twice: state left by the first attempt must not affect the second.
          for (let time = 0; time < 2; time++) await Promise.race([attack(access), crashed]);
          const health = sendHttp2Request(session, access, { path: '/api/v1/namespaces/default' });
          assert.equal((await Promise.race([health, crashed])).status, 200);
          assert.ok(!watch.closed && !watch.destroyed, 'a watch of another client continues');
        } catch (error) {
          const ended = await Promise.race([server.exited, new Promise<void>((resolve) => setImmediate(resolve))]);
          if (ended !== undefined) server = await startServer(t, { dataDir: createTemporaryDir(t) });
          throw error;
        }
      });
    }
    await server.kill('SIGTERM');
  });
}

test('malformed requests of HTTP/1.1 get an error status', async (t) => {
  const access = (await startServer(t, { dataDir: createTemporaryDir(t) })).access();
  const cases: Record<string, RegExp> = {
    'FROB / HTTP/1.1\r\nHost: x\r\n\r\n': /^HTTP\/1\.1 400 Bad Request\r\n/,
    [`GET /livez HTTP/1.1\r\nHost: x\r\nX-Large: ${'x'.repeat(200_000)}\r\n\r\n`]:
      /^HTTP\/1\.1 431 Request Header Fields Too Large\r\n/,
  };
  for (const [request, want] of Object.entries(cases)) {
    const socket = await openTls(access, 'http/1.1');
    socket.write(request);
    assert.match(await untilClosed(socket), want);
  }
});

test('paths in unusual encodings are answered, and none bypasses authorisation', async (t) => {
  const server = await startServer(t, { dataDir: createTemporaryDir(t) });
  const access = server.access();
  const session = openHttp2Session(t, access);
  const anonymousAccess = withoutCredentials(access);
  const anonymous = openHttp2Session(t, anonymousAccess);
  const paths: Record<string, number> = {
    '/api/v1/namespaces/%64efault': 200,
    '/api/v1/namespaces/%zz': 404,
    '/api/v1/namespaces/%': 404,
    '/api/v1/namespaces/%00': 404,
    '/api/v1/namespaces/%ff%fe': 404,
    '/api/v1/namespaces/..%2f..': 404,
    '/api/v1/namespaces/__proto__': 404,
    '/api/v1/constructor': 404,
    '/apis/__proto__/v1/constructor': 404,
    '/__proto__': 404,
    '/livez/../api/v1/namespaces': 404,
    '/livez/%2e%2e/metrics': 404,
    '//api/v1/namespaces': 404,
    [`/api/v1/namespaces/${'x'.repeat(5000)}`]: 404,
    '/api/v1/namespaces?labelSelector=%zz': 400,
    '/api/v1/namespaces?limit=x': 400,
  };
  for (const [path, want] of Object.entries(paths)) {
    const shown = path.length > 80 ? `${path.slice(0, 80)}...` : path;
    assert.equal((await sendHttp2Request(session, access, { path })).status, want, `HTTP/2 ${shown}`);
    assert.equal((await sendHttp1Request(access, { path })).status, want, `HTTP/1.1 ${shown}`);
    const { status, text } = await sendHttp2Request(anonymous, anonymousAccess, { path });
    assert.ok(status === 403 || status === 404, `anonymous ${shown}: ${status}`);
    assert.match(text, /"kind":"Status"|^404 page not found\n$/);
  }
  assert.equal((await server.kill('SIGTERM')).stderr, '', 'no internal error is logged');
});
