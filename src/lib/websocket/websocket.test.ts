import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { test, type TestContext } from 'node:test';
import type { Clock } from '#lib/clock.ts';
import { closePayload, encodeFrame, OPCODES, ServerFrames, type RawFrame } from '#lib/testing/websocket-frames.ts';
import { connectWebSocket, serveUpgrades } from '#lib/testing/websocket-server.ts';
import { acceptWebSocket } from '#lib/websocket/websocket-handshake.ts';
import type { WebSocketStream } from '#lib/websocket/websocket.ts';

/** Starts a server. `accepted` resolves with its side of the first connection. */
async function startServer(t: TestContext): Promise<{ port: number; accepted: Promise<WebSocketStream> }> {
  const { promise: accepted, resolve } = Promise.withResolvers<WebSocketStream>();
  const port = await serveUpgrades(t, (upgrade) => resolve(acceptWebSocket(upgrade, [])!));
  return { port, accepted };
}

async function aPair(t: TestContext): Promise<{ client: WebSocketStream; server: WebSocketStream }> {
  const { port, accepted } = await startServer(t);
  const client = await connectWebSocket(port);
  return { client, server: await accepted };
}

/** A client that sends frames as bytes, and the server's stream. */
async function aRawClient(t: TestContext): Promise<{ raw: RawClient; server: WebSocketStream }> {
  const { port, accepted } = await startServer(t);
  const socket = connect(port, '127.0.0.1');
  t.after(() => socket.destroy());
  const lines = [
    'GET / HTTP/1.1',
    'Host: localhost',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Version: 13',
  ];
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  const server = await accepted;
  await once(socket, 'data');
  return { raw: new RawClient(socket), server };
}

class RawClient {
  readonly socket: Socket;
  readonly #reader = new ServerFrames();
  readonly frames: RawFrame[] = [];

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => {
      this.frames.push(...this.#reader.push(chunk));
      socket.emit('frames');
    });
  }

  send(...frames: readonly RawFrame[]): void {
    this.socket.write(Buffer.concat(frames.map((frame) => encodeFrame(frame))));
  }

  async next(): Promise<RawFrame> {
    while (this.frames.length === 0) await once(this.socket, 'frames');
    return this.frames.shift()!;
  }
}

test('sends the largest datagram as one message', async (t) => {
  const { client, server } = await aPair(t);
  const datagrams = [Buffer.alloc(65_507, 'a'), Buffer.alloc(1, 'b'), Buffer.alloc(40_000, 'c')];
  const received: number[] = [];
  server.on('data', ({ length }: Buffer) => received.push(length));
  for (const datagram of datagrams) client.write(datagram);
  client.end();
  await once(server, 'end');
  assert.deepEqual(
    received,
    datagrams.map(({ length }) => length),
  );
});

test('splits a large write into messages', async (t) => {
  const { client, server } = await aPair(t);
  const sent = Buffer.alloc(200_000, 'selfsame');
  client.end(sent);
  assert.ok((await buffer(server)).equals(sent));
});

test('ends both sides if one side ends', async (t) => {
  const { client, server } = await aPair(t);
  const closed = [once(client, 'close'), once(server, 'close')];
  server.end('bye');
  assert.equal((await buffer(client)).toString(), 'bye');
  server.resume();
  await Promise.all(closed);
});

test('delivers what the other side sent before it saw our end', async (t) => {
  const { client, server } = await aPair(t);
  server.write('last words');
  client.end();
  server.resume();
  assert.equal((await buffer(client)).toString(), 'last words');
});

test('refuses a message in too many pieces, which would block the process', async (t) => {
  const { promise: accepted, resolve } = Promise.withResolvers<{ stream: WebSocketStream; socket: Duplex }>();
  const port = await serveUpgrades(t, (upgrade) => {
    resolve({ stream: acceptWebSocket(upgrade, [])!, socket: upgrade.socket });
  });
  const client = await connectWebSocket(port);
  client.on('error', () => {});
  const { stream, socket } = await accepted;
  const failed = once(stream, 'error', { signal: t.signal });
  const message = encodeFrame({ opcode: OPCODES.binary, payload: Buffer.alloc(20_000) });
  // TCP would join the pieces.
  for (const byte of message) socket.emit('data', Buffer.from([byte]));
  assert.match(String(await failed), /Too many buffered chunks/);
});

test('reports the reason of a close that comes while it writes', async (t) => {
  const { client, server } = await aPair(t);
  const failed = once(client, 'error', { signal: t.signal });
  const results: unknown[] = [];
  const chunk = Buffer.alloc(100_000);
  const write = () =>
    void client.write(chunk, (error) => {
      if (error) results.push(error);
      else setImmediate(write);
    });
  write();
  await once(server, 'data');
  server.close(1011, 'no space left');
  const [error] = (await failed) as [Error & { code: number }];
  assert.deepEqual([error.code, error.message], [1011, 'no space left']);
  await nextTurn();
  assert.deepEqual(results, [error], 'the last write ends');
});

test('reports a close with an error code as an error with its reason', async (t) => {
  const { client, server } = await aPair(t);
  server.close(1011, 'the guest is gone');
  client.resume();
  const [error] = (await once(client, 'error')) as [{ name: string; code: number; message: string }];
  assert.deepEqual([error.name, error.code, error.message], ['WebSocketError', 1011, 'the guest is gone']);
});

test('truncates a long reason at a character', async (t) => {
  const { client, server } = await aPair(t);
  server.close(1011, `a${'é'.repeat(100)}`);
  client.resume();
  const [error] = (await once(client, 'error')) as [Error];
  assert.equal(error.message, `a${'é'.repeat(61)}`);
});

test('reports a broken connection as an error', async (t) => {
  const { raw, server } = await aRawClient(t);
  server.resume();
  raw.socket.destroy();
  const [error] = (await once(server, 'error')) as [{ code: number; message: string }];
  assert.deepEqual([error.code, error.message], [1006, 'the connection broke']);
});

test('ends without an error if the other side disconnects after our close', async (t) => {
  const { raw, server } = await aRawClient(t);
  server.resume().end();
  assert.deepEqual((await raw.next()).payload, closePayload(1000));
  raw.socket.destroy();
  await once(server, 'end');
});

test('refuses writes after the other side has closed', async (t) => {
  const { client, server } = await aPair(t);
  client.resume().end();
  server.resume();
  await once(server, 'end');
  const [error] = await new Promise<[{ message: string }]>((resolve) => {
    server.on('error', () => {});
    server.write('late', (late) => resolve([late!]));
  });
  assert.match(error.message, /closed|after end|destroyed/);
});

test('stops the sender while the reader does not read', async (t) => {
  const { client, server } = await aPair(t);
  const chunk = Buffer.alloc(64 * 1024);
  let sent = 0;
  while (sent < 64 * 1024 * 1024 && (server.write(chunk) || server.writableLength < chunk.length * 4)) {
    sent += chunk.length;
    await nextTurn();
  }
  assert.ok(sent < 32 * 1024 * 1024, `${sent} bytes were accepted`);
  const read = buffer(client);
  server.end();
  assert.ok((await read).length >= sent);
});

test('accepts a client of another implementation, the WebSocket of Node.js', async (t) => {
  const { port, accepted } = await startServer(t);
  const client = new WebSocket(`ws://127.0.0.1:${port}/`);
  client.binaryType = 'arraybuffer';
  await once(client, 'open');
  const server = await accepted;
  const answers: string[] = [];
  client.addEventListener('message', ({ data }) => answers.push(Buffer.from(data as ArrayBuffer).toString()));
  client.send(Buffer.from('binary'));
  client.send('text, ü');
  const received: string[] = [];
  server.on('data', (chunk: Buffer) => {
    received.push(chunk.toString());
    server.write(chunk.toString().toUpperCase());
  });
  while (answers.length < 2) await once(client, 'message');
  assert.deepEqual(received, ['binary', 'text, ü']);
  assert.deepEqual(answers, ['BINARY', 'TEXT, Ü']);
  const closed = once(client, 'close') as unknown as Promise<[CloseEvent]>;
  server.close(4001, 'replaced');
  const [{ code, reason }] = await closed;
  assert.deepEqual([code, reason], [4001, 'replaced']);
});

const text = (payload: string | Buffer, more: Partial<RawFrame> = {}): RawFrame => ({
  opcode: OPCODES.text,
  payload: Buffer.from(payload),
  ...more,
});
const frame = (opcode: number, payload: string | Buffer = '', more: Partial<RawFrame> = {}): RawFrame => ({
  opcode,
  payload: Buffer.from(payload),
  ...more,
});

/** The groups of the Autobahn test suite: what a client sends, and what the server answers with or delivers. */
const accepted: Record<string, { send: RawFrame[]; read?: string; pongs?: string[] }> = {
  'framing: an empty message': { send: [text('')], read: '' },
  'framing: 125 bytes': { send: [text('a'.repeat(125))], read: 'a'.repeat(125) },
  'framing: 126 bytes, with a length of 16 bits': { send: [text('a'.repeat(126))], read: 'a'.repeat(126) },
  'framing: 65536 bytes, with a length of 64 bits': { send: [text('a'.repeat(65_536))], read: 'a'.repeat(65_536) },
  'framing: binary bytes': { send: [frame(OPCODES.binary, Buffer.from([0x61, 0x62]))], read: 'ab' },
  'pings: without a payload': { send: [frame(OPCODES.ping)], pongs: [''] },
  'pings: with 125 bytes': { send: [frame(OPCODES.ping, 'p'.repeat(125))], pongs: ['p'.repeat(125)] },
  'pings: several, in order': { send: ['1', '2', '3'].map((n) => frame(OPCODES.ping, n)), pongs: ['1', '2', '3'] },
  'pongs: unsolicited': { send: [frame(OPCODES.pong, 'x'), text('a')], read: 'a' },
  'fragments: two': { send: [text('a', { fin: false }), frame(OPCODES.continuation, 'b')], read: 'ab' },
  'fragments: with a ping between them': {
    send: [text('a', { fin: false }), frame(OPCODES.ping, 'p'), frame(OPCODES.continuation, 'b')],
    read: 'ab',
    pongs: ['p'],
  },
  'fragments: empty ones': {
    send: [text('', { fin: false }), frame(OPCODES.continuation, '', { fin: false }), frame(OPCODES.continuation, 'c')],
    read: 'c',
  },
  'UTF-8: a character in two fragments': {
    send: [
      text(Buffer.from('ü').subarray(0, 1), { fin: false }),
      frame(OPCODES.continuation, Buffer.from('ü').subarray(1)),
    ],
    read: 'ü',
  },
};
for (const [sentence, { send, read = '', pongs = [] }] of Object.entries(accepted)) {
  test(`accepts ${sentence}`, async (t) => {
    const { raw, server } = await aRawClient(t);
    const received = buffer(server);
    raw.send(...send, frame(OPCODES.close, closePayload(1000)));
    assert.equal((await received).toString(), read);
    for (const pong of pongs) assert.deepEqual(await raw.next(), { ...frame(OPCODES.pong, pong), fin: true });
    assert.equal((await raw.next()).payload.readUInt16BE(), 1000);
  });
}

const refused: Record<string, { send: RawFrame | RawFrame[] | Buffer; code: number }> = {
  'reserved bits': { send: text('a', { reserved: 1 }), code: 1002 },
  'the bit of compression, which was not negotiated': { send: text('a', { reserved: 4 }), code: 1002 },
  'the reserved opcode 3': { send: frame(3), code: 1002 },
  'the reserved opcode 7': { send: frame(7), code: 1002 },
  'the reserved opcode 11': { send: frame(11), code: 1002 },
  'the reserved opcode 15': { send: frame(15), code: 1002 },
  'a ping with 126 bytes': { send: frame(OPCODES.ping, 'p'.repeat(126)), code: 1002 },
  'a fragmented ping': { send: frame(OPCODES.ping, 'p', { fin: false }), code: 1002 },
  'a fragmented close': { send: frame(OPCODES.close, closePayload(1000), { fin: false }), code: 1002 },
  'a continuation without a beginning': { send: frame(OPCODES.continuation, 'a'), code: 1002 },
  'a message inside another': { send: [text('a', { fin: false }), text('b')], code: 1002 },
  'a frame without a mask': { send: encodeFrame(text('a'), false), code: 1002 },
  'a request line instead of a frame': { send: Buffer.from('GET / HTTP/1.1\r\n\r\n'), code: 1002 },
  'text that is not UTF-8': { send: text(Buffer.from([0xce, 0xba, 0xff])), code: 1007 },
  'text with a surrogate': { send: text(Buffer.from([0xed, 0xa0, 0x80])), code: 1007 },
  'text that is not UTF-8 in its fragments together': {
    send: [text(Buffer.from([0xc3]), { fin: false }), frame(OPCODES.continuation, 'a')],
    code: 1007,
  },
  'a message above the limit': { send: frame(OPCODES.binary, Buffer.alloc(1024 * 1024 + 1)), code: 1009 },
  'a message above the limit in fragments': {
    send: [
      frame(OPCODES.binary, Buffer.alloc(1024 * 1024), { fin: false }),
      frame(OPCODES.continuation, 'a', { fin: false }),
    ],
    code: 1009,
  },
  'a close with one byte': { send: frame(OPCODES.close, 'a'), code: 1002 },
  'a close with 126 bytes': { send: frame(OPCODES.close, closePayload(1000, 'a'.repeat(124))), code: 1002 },
  'a close whose reason is not UTF-8': {
    send: frame(OPCODES.close, closePayload(1000, Buffer.from([0xff]))),
    code: 1007,
  },
  ...Object.fromEntries(
    [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000].map((code) => [
      `a close with the code ${code}`,
      { send: frame(OPCODES.close, closePayload(code)), code: 1002 },
    ]),
  ),
};
for (const [sentence, { send, code }] of Object.entries(refused)) {
  test(`refuses ${sentence}`, async (t) => {
    const { raw, server } = await aRawClient(t);
    const failed = once(server.resume(), 'error') as Promise<[Error]>;
    if (Buffer.isBuffer(send)) raw.socket.write(send);
    else raw.send(...[send].flat());
    const answer = await raw.next();
    assert.deepEqual([answer.opcode, answer.payload.readUInt16BE()], [OPCODES.close, code]);
    const [error] = await failed;
    assert.equal(error.name, 'WebSocketError');
  });
}

const closes: Record<string, { payload: Buffer; echo: Buffer; isError: boolean }> = {
  'without a code': { payload: Buffer.alloc(0), echo: Buffer.alloc(0), isError: false },
  'with code 1000': { payload: closePayload(1000), echo: closePayload(1000), isError: false },
  'with code 1001 and a reason': {
    payload: closePayload(1001, 'bye'),
    echo: closePayload(1001, 'bye'),
    isError: false,
  },
  'with code 1011': { payload: closePayload(1011), echo: closePayload(1011), isError: true },
  'with the private code 3000': { payload: closePayload(3000), echo: closePayload(3000), isError: true },
  'with the private code 4999': { payload: closePayload(4999), echo: closePayload(4999), isError: true },
};
for (const [sentence, { payload, echo, isError }] of Object.entries(closes)) {
  test(`answers a close ${sentence}, and ignores what follows`, async (t) => {
    const { raw, server } = await aRawClient(t);
    const ended = once(server.resume(), isError ? 'error' : 'end');
    server.on('data', () => assert.fail('data after a close'));
    raw.send(frame(OPCODES.close, payload), text('late'), frame(OPCODES.ping));
    const answer = await raw.next();
    assert.deepEqual([answer.opcode, answer.payload], [OPCODES.close, echo]);
    await ended;
    assert.deepEqual(raw.frames, []);
  });
}

/** A clock whose only timer is fired by the test. */
class TimerClock implements Clock {
  #elapsedMs = 0;
  timer: { ms: number; fn: () => void } | undefined;
  now = () => 0;
  elapsed = () => this.#elapsedMs;
  after(ms: number, fn: () => void): () => void {
    const timer = { ms, fn };
    this.timer = timer;
    return () => {
      if (this.timer === timer) this.timer = undefined;
    };
  }
  fire(): void {
    const timer = this.timer!;
    this.timer = undefined;
    this.#elapsedMs += timer.ms;
    timer.fn();
  }
}

test('pings a silent side, which stays connected as long as it answers', async (t) => {
  const { raw, server } = await aRawClient(t);
  const clock = new TimerClock();
  server.resume().keepAlive(clock);
  for (let minute = 0; minute < 10; minute++) {
    clock.fire();
    assert.equal((await raw.next()).opcode, OPCODES.ping);
    const read = once(server, 'data');
    raw.send(frame(OPCODES.pong), text('after the pong'));
    await read;
  }
  assert.equal(server.destroyed, false);
  server.destroy();
  await once(server, 'close');
  assert.equal(clock.timer, undefined);
});

test('closes a connection whose other side does not answer for five minutes', async (t) => {
  const { server } = await aRawClient(t);
  const clock = new TimerClock();
  server.resume().keepAlive(clock);
  const failed = once(server, 'error') as Promise<[Error]>;
  let checks = 0;
  for (; clock.timer !== undefined && checks < 20; checks++) {
    clock.fire();
    await nextTurn();
    await nextTurn();
  }
  assert.equal(checks, 10);
  assert.equal((await failed)[0].message, 'the other side sent nothing for 300 seconds');
});

test('does not expect answers while we do not read', async (t) => {
  const { raw, server } = await aRawClient(t);
  const clock = new TimerClock();
  server.keepAlive(clock);
  raw.send(...Array.from({ length: 8 }, () => frame(OPCODES.binary, Buffer.alloc(64 * 1024))));
  await once(server, 'readable');
  while (server.readableLength < server.readableHighWaterMark) await nextTurn();
  for (let checks = 0; checks < 20; checks++) clock.fire();
  assert.equal(server.destroyed, false);
  server.on('error', () => {}).destroy();
});
