import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { buffer } from 'node:stream/consumers';
import { encodeFrame, OPCODES, FrameReader, type Frame } from '#lib/websocket-frames.ts';
import { WebSocketStream } from '#lib/websocket.ts';

/** Both ends of a TCP connection. */
async function aConnection(t: TestContext): Promise<{ near: Socket; far: Socket }> {
  const server = createServer({ allowHalfOpen: true });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const near = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [far] = await accepted;
  t.after(() => {
    near.destroy();
    far.destroy();
    server.close();
  });
  return { near, far };
}

async function aPair(t: TestContext): Promise<{ client: WebSocketStream; server: WebSocketStream }> {
  const { near, far } = await aConnection(t);
  return {
    client: new WebSocketStream(near, { role: 'client' }),
    server: new WebSocketStream(far, { role: 'server' }),
  };
}

test('sends the largest datagram as one message', async (t) => {
  const { client, server } = await aPair(t);
  const datagrams = [Buffer.alloc(65_507, 'a'), Buffer.alloc(1, 'b'), Buffer.alloc(40_000, 'c')];
  for (const datagram of datagrams) client.write(datagram);
  client.end();
  const received: number[] = [];
  server.on('data', ({ length }: Buffer) => received.push(length));
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

test('ends both sides and closes both connections if one side ends', async (t) => {
  const { near, far } = await aConnection(t);
  const client = new WebSocketStream(near, { role: 'client' });
  const server = new WebSocketStream(far, { role: 'server' });
  const closed = [once(near, 'close'), once(far, 'close')];
  server.end('bye');
  assert.equal((await buffer(client)).toString(), 'bye');
  server.resume();
  await Promise.all(closed);
});

test('reads the bytes that came with the handshake first', async (t) => {
  const { near, far } = await aConnection(t);
  const head = encodeFrame({ opcode: OPCODES.binary, fin: true, payload: Buffer.from('one ') });
  const client = new WebSocketStream(near, { role: 'client', head });
  new WebSocketStream(far, { role: 'server' }).resume().end('two');
  assert.equal((await buffer(client)).toString(), 'one two');
});

test('answers a ping with the same payload', async (t) => {
  const { near, far } = await aConnection(t);
  new WebSocketStream(near, { role: 'client' }).on('error', () => {}).resume();
  far.write(encodeFrame({ opcode: OPCODES.ping, fin: true, payload: Buffer.from('there?') }));
  const [bytes] = (await once(far, 'data')) as [Buffer];
  const [frame] = new FrameReader({ masked: true, maxMessageBytes: 100 }).push(bytes) as [Frame];
  assert.deepEqual(frame, { opcode: OPCODES.pong, fin: true, payload: Buffer.from('there?') });
});

test('reports a close with an error code as an error with its reason', async (t) => {
  const { client, server } = await aPair(t);
  server.close(1011, 'the guest is gone');
  client.resume();
  const [error] = (await once(client, 'error')) as [Error];
  assert.deepEqual([error.name, error.message], ['WebSocketError', 'the guest is gone']);
});

test('reports a broken connection as an error', async (t) => {
  const { near, far } = await aConnection(t);
  const client = new WebSocketStream(near, { role: 'client' });
  client.resume();
  far.destroy();
  const [error] = (await once(client, 'error')) as [{ code?: number }];
  assert.equal(error.code, 1006);
});

test('answers an invalid frame with a protocol error', async (t) => {
  const { near, far } = await aConnection(t);
  const server = new WebSocketStream(far, { role: 'server' });
  server.on('error', () => {});
  near.write('GET / HTTP/1.1\r\n\r\n');
  const [bytes] = (await once(near, 'data')) as [Buffer];
  const [frame] = new FrameReader({ masked: false, maxMessageBytes: 200 }).push(bytes) as [Frame];
  assert.equal(frame.opcode, OPCODES.close);
  assert.equal(frame.payload.readUInt16BE(), 1002);
});

test('stops the sender while the reader does not read', async (t) => {
  const { client, server } = await aPair(t);
  const chunk = Buffer.alloc(64 * 1024);
  let sent = 0;
  while (sent < 64 * 1024 * 1024 && (server.write(chunk) || server.writableLength < chunk.length * 4)) {
    sent += chunk.length;
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.ok(sent < 32 * 1024 * 1024, `${sent} bytes were accepted`);
  const read = buffer(client);
  server.end();
  assert.ok((await read).length >= sent);
});
