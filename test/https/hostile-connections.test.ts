/** Connections that send much, little or nothing: they hold neither memory nor descriptors, and keep nobody out. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { connectionSizes } from '#engine/http/connection-limits.ts';
import { frame, frameTypes, getHeaders, greeting, headersFrame, openTls, untilClosed } from '#test/https/raw-tls.ts';
import { startFrontServer } from '#test/support/front-server.ts';
import {
  openHttp2Session,
  readHttp2Response,
  sendHttp1Request,
  sendHttp2Request,
  withoutCredentials,
} from '#test/support/raw-https.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';
const ALMOST_A_MEBIBYTE = 1024 * 1024 - 1;
/** Enough time for a loaded machine to deliver a head, and a short wait for this test. */
const HEAD_MS = 1500;

async function startFront(t: TestContext, sizes: Partial<ReturnType<typeof connectionSizes>> = {}) {
  const front = await startFrontServer(t, { connectionSizes: { ...connectionSizes(20_000), ...sizes } });
  t.after(() => front.stop());
  return front;
}

async function openTcp(access: ClusterAccess): Promise<Socket> {
  const { hostname, port } = new URL(access.server);
  const socket = connectTcp(Number(port), hostname);
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

const isServed = async (access: ClusterAccess) =>
  (await sendHttp1Request(access, { path: '/api/v1/nodes' })).status === 200;

describe('a body of somebody who may not send one', () => {
  it('is dropped, and its HTTP/2 stream is closed', async (t) => {
    const front = await startFront(t);
    const anonymous = withoutCredentials(front.admin);
    const session = openHttp2Session(t, anonymous);
    await once(session, 'remoteSettings');
    const { initialWindowSize = 0 } = session.remoteSettings;
    assert.ok(initialWindowSize < 64 * 1024, `the first window has ${initialWindowSize} bytes`);
    const stream = session.request({ ':method': 'POST', ':path': MAPS }, { endStream: false });
    stream.write(Buffer.alloc(ALMOST_A_MEBIBYTE, ' '));
    const closed = once(stream, 'close');
    assert.equal((await readHttp2Response(stream)).status, 403);
    await closed;
    assert.equal(stream.rstCode, 0);
  });

  it('is dropped, and its HTTP/1.1 connection is closed', async (t) => {
    const front = await startFront(t);
    const socket = await openTls(withoutCredentials(front.admin), 'http/1.1');
    socket.write(`POST ${MAPS} HTTP/1.1\r\nhost: x\r\ncontent-length: ${2 * ALMOST_A_MEBIBYTE}\r\n\r\n`);
    socket.write(Buffer.alloc(ALMOST_A_MEBIBYTE, ' '));
    assert.match(await untilClosed(socket), /^HTTP\/1\.1 403 /);
  });

  it('gets a larger window when its user is known', async (t) => {
    const front = await startFront(t);
    const session = openHttp2Session(t, front.admin);
    await once(session, 'remoteSettings');
    const widened = once(session, 'remoteSettings');
    assert.equal((await sendHttp2Request(session, front.admin, { path: '/api/v1/nodes' })).status, 200);
    await widened;
    assert.equal(session.remoteSettings.initialWindowSize, 1024 * 1024);
  });
});

describe('a head that never ends', () => {
  const slowHeads: Record<string, (access: ClusterAccess) => Promise<unknown>> = {
    'nothing at all': async (access) => await once(await openTcp(access), 'close'),
    'half a TLS handshake': async (access) => {
      const socket = await openTcp(access);
      socket.write(Buffer.from([22, 3, 1, 2]));
      await once(socket, 'close');
    },
    'half a head of HTTP/1.1': async (access) => {
      const socket = await openTls(access, 'http/1.1');
      socket.write('GET /api HTTP/1.1\r\nx: y');
      await untilClosed(socket);
    },
    'half a second head of HTTP/1.1': async (access) => {
      const socket = await openTls(access, 'http/1.1');
      socket.write('GET /version HTTP/1.1\r\nhost: x\r\n\r\nGET /api HTTP/1.1\r\nx: y');
      await untilClosed(socket);
    },
    'half a preface of HTTP/2': async (access) => {
      const socket = await openTls(access, 'h2');
      socket.write('PRI * HT');
      await untilClosed(socket);
    },
    'half a head of HTTP/2': async (access) => {
      const socket = await openTls(access, 'h2');
      const head = headersFrame(1, getHeaders('/api'));
      socket.write(Buffer.concat([greeting, head.subarray(0, head.length - 1)]));
      await untilClosed(socket);
    },
    'a preface of HTTP/2 and pings': async (access) => {
      const socket = await openTls(access, 'h2');
      socket.write(Buffer.concat([greeting, frame(frameTypes.ping, { payload: Buffer.alloc(8) })]));
      await untilClosed(socket);
    },
  };
  for (const [name, hold] of Object.entries(slowHeads)) {
    it(`is closed: ${name}`, async (t) => {
      const front = await startFront(t, { headMs: HEAD_MS });
      await hold(withoutCredentials(front.admin));
    });
  }
});

describe('idle sockets', () => {
  it('do not keep users out when there are more than the limit', async (t) => {
    const front = await startFront(t, { total: 40, anonymousPerAddress: 30, perUser: 20 });
    const idle = await Promise.all(Array.from({ length: 100 }, () => openTcp(front.admin)));
    t.after(() => idle.forEach((socket) => socket.destroy()));
    assert.equal(await isServed(front.admin), true);
  });

  it('of one user do not keep another user out', async (t) => {
    const front = await startFront(t, { total: 20, anonymousPerAddress: 5, perUser: 10 });
    const mallory = front.accessOf('mallory');
    for (let count = 0; count < 30; count++) {
      const session = openHttp2Session(t, mallory);
      await sendHttp2Request(session, mallory, { path: '/version' }).catch(() => {});
    }
    assert.equal(await isServed(front.admin), true);
  });
});

describe('a flood of requests of one user', () => {
  it('is refused with Retry-After, and others are served meanwhile', async (t) => {
    const front = await startFront(t);
    const mallory = front.accessOf('mallory');
    const sessions = [openHttp2Session(t, mallory), openHttp2Session(t, mallory), openHttp2Session(t, mallory)];
    const bystander = openHttp2Session(t, front.admin);
    await sendHttp2Request(bystander, front.admin, { path: '/version' });
    const order: string[] = [];
    const flood = sessions.flatMap((session) =>
      Array.from({ length: 1900 }, async () => {
        const { status, headers } = await sendHttp2Request(session, mallory, { path: '/api/v1/nodes' });
        order.push('mallory');
        return { status, retryAfter: headers['retry-after'] };
      }),
    );
    await Promise.race(flood);
    assert.equal((await sendHttp2Request(bystander, front.admin, { path: '/api/v1/nodes' })).status, 200);
    order.push('bystander');
    const answers = await Promise.all(flood);
    assert.ok(order.at(-1) === 'mallory', 'the bystander was served last');
    for (const { status, retryAfter } of answers) assert.ok(status === 403 || (status === 429 && retryAfter === '1'));
  });
});
