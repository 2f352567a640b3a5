/** Connections that send much, little or nothing: they hold neither memory nor descriptors, and keep nobody out. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { connectionSizes } from '#engine/http/connection-limits.ts';
import { MAX_BEGUN_PER_ADDRESS } from '#engine/http/handshakes.ts';
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

  it('of a watch is dropped, and its window stays small when the user is known', { timeout: 10_000 }, async (t) => {
    const front = await startFront(t);
    const session = openHttp2Session(t, front.admin);
    const watch = session.request({ ':method': 'GET', ':path': `${MAPS}?watch=1` }, { endStream: false });
    await once(watch, 'response');
    assert.ok(session.remoteSettings.initialWindowSize! < 64 * 1024);
    // With a small window, this ends only if the server takes the bytes.
    await new Promise((resolve) => watch.write(Buffer.alloc(ALMOST_A_MEBIBYTE, ' '), resolve));
    assert.equal(watch.closed, false);
  });

  it('closes a watch if it has more bytes than any body may have', { timeout: 10_000 }, async (t) => {
    const front = await startFront(t);
    const session = openHttp2Session(t, front.admin);
    const watch = session.request({ ':method': 'GET', ':path': `${MAPS}?watch=1` }, { endStream: false });
    const closed = new Promise((resolve) => watch.on('error', () => {}).once('close', resolve));
    watch.write(Buffer.alloc(4 * ALMOST_A_MEBIBYTE, ' '));
    await closed;
  });
});

describe('request bodies of clients that left', () => {
  const aBody = Buffer.alloc(700_000, ' ');
  const statusOfBody = async (access: ClusterAccess) => {
    const headers = { 'content-type': 'application/json' };
    return (await sendHttp1Request(access, { method: 'POST', path: MAPS, headers, body: aBody })).status;
  };

  it('are not counted for ever if they left while they waited for a turn', async (t) => {
    const front = await startFront(t);
    const create = { ...getHeaders(MAPS), ':method': 'POST', 'content-length': '3000000' };
    const reset = (stream: number) => frame(frameTypes.rstStream, { stream, payload: Buffer.from([0, 0, 0, 8]) });
    for (let round = 0; round < 3; round++) {
      const anonymous = await openTls(withoutCredentials(front.admin), 'h2');
      const socket = await openTls(front.admin, 'h2');
      t.after(() => [anonymous, socket].forEach((one) => one.destroy()));
      const ids = Array.from({ length: 70 }, (_, index) => 2 * index + 1);
      anonymous.write(Buffer.concat([greeting, ...ids.map((id) => headersFrame(id, getHeaders('/version')))]));
      const left = ids.slice(0, 30).flatMap((id) => [headersFrame(id, create, { open: true }), reset(id)]);
      socket.write(Buffer.concat([greeting, ...left]));
      await sendHttp1Request(front.admin, { path: '/version' });
    }
    assert.equal(await statusOfBody(front.admin), 400);
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

describe('a flood of requests without a user', () => {
  const flood = async (t: TestContext, access: ClusterAccess) => {
    const ids = Array.from({ length: 1000 }, (_, index) => 2 * index + 1);
    const requests = Buffer.concat([greeting, ...ids.map((id) => headersFrame(id, getHeaders('/version')))]);
    const sockets = await Promise.all(Array.from({ length: 6 }, () => openTls(withoutCredentials(access), 'h2')));
    t.after(() => sockets.forEach((socket) => socket.destroy()));
    for (const socket of sockets) socket.resume().write(requests);
  };
  const twenty = <T>(make: () => Promise<T>) => Promise.allSettled(Array.from({ length: 20 }, make));
  const statuses = (results: PromiseSettledResult<{ status: number }>[]) =>
    results.map((result) => (result.status === 'fulfilled' ? result.value.status : String(result.reason)));

  it('keeps no new connection of a user at the same address out', async (t) => {
    const front = await startFront(t);
    await flood(t, front.admin);
    const answers = statuses(await twenty(() => sendHttp1Request(front.admin, { path: '/api/v1/nodes' })));
    assert.deepEqual(answers, Array(20).fill(200));
  });

  it('keeps no anonymous probe of health on a new connection out', async (t) => {
    const front = await startFront(t);
    await flood(t, front.admin);
    const anonymous = withoutCredentials(front.admin);
    const answers = statuses(await twenty(() => sendHttp1Request(anonymous, { path: '/livez' })));
    // Without roles, the handler answers 403; a request that did not get there is cut or gets 429.
    assert.deepEqual(answers, Array(20).fill(403));
  });

  it('has few streams, and more when its user is known', async (t) => {
    const front = await startFront(t);
    const anonymous = openHttp2Session(t, withoutCredentials(front.admin));
    await sendHttp2Request(anonymous, withoutCredentials(front.admin), { path: '/version' });
    assert.equal(anonymous.remoteSettings.maxConcurrentStreams, 16);
    const known = openHttp2Session(t, front.admin);
    await sendHttp2Request(known, front.admin, { path: '/version' });
    assert.equal(known.remoteSettings.maxConcurrentStreams, 100);
  });

  it('is closed if nobody reads its responses', { timeout: 20_000 }, async (t) => {
    const front = await startFront(t, { headMs: HEAD_MS });
    const socket = await openTls(withoutCredentials(front.admin), 'h2');
    const noWindow = frame(frameTypes.settings, { payload: Buffer.from([0, 4, 0, 0, 0, 0]) });
    socket.write(Buffer.concat([greeting, noWindow, headersFrame(1, getHeaders('/version'))]));
    await untilClosed(socket);
  });
});

describe('handshakes that are never finished', () => {
  it('are few, and keep nobody out', { timeout: 20_000 }, async (t) => {
    const front = await startFront(t, { headMs: 60_000 });
    const silent = await Promise.all(Array.from({ length: 300 }, () => openTcp(front.admin)));
    t.after(() => silent.forEach((socket) => socket.destroy()));
    const closed = silent.map((socket) => once(socket, 'close'));
    assert.equal(await isServed(front.admin), true);
    let count = 0;
    await new Promise<void>((resolve) => {
      for (const one of closed) void one.then(() => ++count === 300 - MAX_BEGUN_PER_ADDRESS && resolve());
    });
    assert.equal(await isServed(front.admin), true);
  });
});

describe('many requests of a user on one connection', () => {
  it('are all answered, although the connection has fewer streams', { timeout: 30_000 }, async (t) => {
    const front = await startFront(t);
    const session = openHttp2Session(t, front.admin);
    const send = () => sendHttp2Request(session, front.admin, { path: '/api/v1/nodes' });
    const answers = await Promise.all(Array.from({ length: 1000 }, send));
    assert.ok(answers.every(({ status }) => status === 200));
  });
});

describe('a flood of requests of one user', () => {
  it('is refused with Retry-After, and others are served meanwhile', async (t) => {
    const front = await startFront(t);
    const mallory = front.accessOf('mallory');
    const sessions = Array.from({ length: 30 }, () => openHttp2Session(t, mallory));
    const bystander = openHttp2Session(t, front.admin);
    await sendHttp2Request(bystander, front.admin, { path: '/version' });
    const order: string[] = [];
    const flood = sessions.flatMap((session) =>
      Array.from({ length: 190 }, async () => {
        const { status, headers } = await sendHttp2Request(session, mallory, { path: '/api/v1/nodes' });
        order.push(status === 429 ? 'refused' : 'mallory');
        return { status, retryAfter: headers['retry-after'] };
      }),
    );
    await Promise.race(flood);
    assert.equal((await sendHttp2Request(bystander, front.admin, { path: '/api/v1/nodes' })).status, 200);
    order.push('bystander');
    const answers = await Promise.all(flood);
    const served = order.slice(0, order.indexOf('bystander')).filter((user) => user === 'mallory').length;
    t.diagnostic(`${served} of ${answers.length} requests of the flood were served before that of the bystander`);
    assert.ok(served < 1000, `${served} requests of the flood were served before that of the bystander`);
    assert.ok(answers.some(({ status }) => status === 429));
    for (const { status, retryAfter } of answers) assert.ok(status === 403 || (status === 429 && retryAfter === '1'));
  });
});
