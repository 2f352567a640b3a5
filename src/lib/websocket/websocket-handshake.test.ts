import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock, type Clock } from '#lib/clock.ts';
import { connectWebSocket, serveUpgrades } from '#lib/testing/websocket-server.ts';
import { acceptWebSocket, findHandshakeError, requestWebSocket } from '#lib/websocket/websocket-handshake.ts';

type Headers = Readonly<Record<string, string>>;
const GOOD: Headers = {
  upgrade: 'WebSocket',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  'sec-websocket-version': '13',
};
const requests: Record<string, { headers: Headers; want?: RegExp }> = {
  'accepts a client without subprotocols': { headers: GOOD },
  'accepts a client with a known subprotocol': { headers: { ...GOOD, 'sec-websocket-protocol': 'x, b ,a' } },
  'refuses a client with unknown subprotocols only': {
    headers: { ...GOOD, 'sec-websocket-protocol': 'x' },
    want: /^none of the requested subprotocols is known; known are: a, b$/,
  },
  'refuses another protocol': { headers: { ...GOOD, upgrade: 'SPDY/3.1' }, want: /does not ask to upgrade to one/ },
  'refuses a short key': { headers: { ...GOOD, 'sec-websocket-key': 'abc' }, want: /Sec-WebSocket-Key is missing/ },
  'refuses a request without a key': {
    headers: { upgrade: 'websocket', 'sec-websocket-version': '13' },
    want: /Sec-WebSocket-Key is missing/,
  },
  'refuses an older version': { headers: { ...GOOD, 'sec-websocket-version': '8' }, want: /must be 13/ },
};
for (const [sentence, { headers, want }] of Object.entries(requests)) {
  test(`the server ${sentence}`, () => {
    const error = findHandshakeError(headers, ['a', 'b']);
    if (want === undefined) assert.equal(error, undefined);
    else assert.match(error ?? '', want);
  });
}

test('the server selects the first subprotocol of the client that is known, and no compression', async (t) => {
  const port = await serveUpgrades(t, (upgrade) => void acceptWebSocket(upgrade, ['a', 'b'])?.on('error', () => {}));
  const client = new WebSocket(`ws://127.0.0.1:${port}/`, ['x', 'b', 'a']);
  await new Promise((resolve) => client.addEventListener('open', resolve));
  assert.deepEqual([client.protocol, client.extensions], ['b', '']);
  client.close();
});

test('the server does not accept a client that is gone', async (t) => {
  let accepted: unknown = 'not called';
  const { promise: called, resolve } = Promise.withResolvers<void>();
  const port = await serveUpgrades(t, (upgrade) => {
    upgrade.socket.destroy();
    accepted = acceptWebSocket(upgrade, []);
    resolve();
  });
  await assert.rejects(connectWebSocket(port));
  await called;
  assert.equal(accepted, undefined);
});

const HEAD = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n';
const responses: Record<string, { response: string; want: RegExp }> = {
  'another protocol': { response: `${HEAD}Upgrade: SPDY/3.1\r\n\r\n`, want: /Invalid Upgrade header/ },
  'the answer to another key': {
    response: `${HEAD}Upgrade: websocket\r\nSec-WebSocket-Accept: AAAA\r\n\r\n`,
    want: /Invalid Sec-WebSocket-Accept header/,
  },
};
for (const [sentence, { response, want }] of Object.entries(responses)) {
  test(`the client refuses ${sentence}`, async (t) => {
    const port = await serveUpgrades(t, ({ socket }) => void socket.write(response));
    await assert.rejects(connectWebSocket(port, ['a']), { name: 'HandshakeError', message: want });
  });
}

test('the client refuses a subprotocol that it did not request', async (t) => {
  const port = await serveUpgrades(t, (upgrade) => {
    upgrade.request.headers['sec-websocket-protocol'] = 'z';
    acceptWebSocket(upgrade, ['z'])?.on('error', () => {});
  });
  await assert.rejects(connectWebSocket(port, ['a']), { name: 'HandshakeError', message: /invalid subprotocol/ });
});

test('the client returns the response of a server that refuses', async (t) => {
  const port = await serveUpgrades(t, ({ socket }) => void socket.end('HTTP/1.1 409 Conflict\r\n\r\nbusy'));
  const options = { url: `http://127.0.0.1:${port}/`, protocols: [], timeoutMs: 1000, clock: systemClock };
  const { incoming, stream } = await requestWebSocket(options);
  assert.deepEqual([incoming.statusCode, stream], [409, undefined]);
  assert.equal((await incoming.toArray()).join(''), 'busy');
});

test('the client gives up if the server does not respond', async (t) => {
  const port = await serveUpgrades(t, () => fire());
  let fire = () => {};
  const clock: Clock = {
    ...systemClock,
    after: (_, fn) => {
      fire = fn;
      return () => {};
    },
  };
  const request = requestWebSocket({ url: `http://127.0.0.1:${port}/`, protocols: [], timeoutMs: 65_000, clock });
  await assert.rejects(request, { message: 'no response within 65 seconds' });
});
