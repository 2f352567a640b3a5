/** Frames of WebSocket clients, with damaged headers, lengths, masks and close codes. `ws` parses them; the stream is ours. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import fc from 'fast-check';
import { closePayload, encodeFrame, OPCODES } from '#lib/testing/websocket-frames.ts';
import { serveUpgrades } from '#lib/testing/websocket-server.ts';
import { acceptWebSocket } from '#lib/websocket/websocket-handshake.ts';
import { WebSocketError, type WebSocketStream } from '#lib/websocket/websocket.ts';
import { checkInputs } from '#test/fuzz/check-inputs.ts';
import { byteMutations, chunkSizes, chunksOf, type Mutation } from '#test/fuzz/mutations.ts';

const HANDSHAKE = [
  'GET / HTTP/1.1',
  'Host: localhost',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Version: 13',
];

const payload = fc.oneof(
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  fc.constantFrom(126, 65_535, 65_536).map((length) => Buffer.alloc(length, 'x')),
  fc
    .tuple(fc.nat(65_535), fc.uint8Array({ maxLength: 130 }))
    .map(([code, reason]) => closePayload(code, Buffer.from(reason))),
);
const frame = fc
  .record({
    opcode: fc.oneof(fc.constantFrom(...Object.values(OPCODES)), fc.nat(15)),
    payload,
    fin: fc.boolean(),
    reserved: fc.constantFrom(0, 0, 0, 1, 7),
    masked: fc.constantFrom(true, true, true, false),
  })
  .map(({ masked, ...parts }) => encodeFrame(parts, masked));
const unchanged: Mutation = (bytes) => bytes;
const piece = (fin: boolean, opcode: number) => encodeFrame({ opcode, payload: Buffer.from('x'), fin });

/** Opens a connection. `accepted` has the streams of the server, in order. */
async function openRaw(
  port: number,
  accepted: WebSocketStream[],
): Promise<{ socket: Socket; server: WebSocketStream }> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(`${HANDSHAKE.join('\r\n')}\r\n\r\n`);
  await once(socket, 'data');
  return { socket, server: accepted.at(-1)! };
}

test('no frame of a client crashes the server, keeps a stream open or blocks the event loop', async (t: TestContext) => {
  const accepted: WebSocketStream[] = [];
  const port = await serveUpgrades(t, (upgrade) => accepted.push(acceptWebSocket(upgrade, [])!));
  await checkInputs(
    t,
    {
      runs: 250,
      values: fc.tuple(
        fc.array(frame, { minLength: 1, maxLength: 8 }).map((frames) => Buffer.concat(frames)),
        fc.oneof(fc.constant(unchanged), byteMutations),
        chunkSizes,
      ),
      always: [
        [Buffer.concat(Array.from({ length: 20_000 }, () => piece(true, OPCODES.ping))), unchanged, 65_536],
        [
          Buffer.concat([
            piece(false, OPCODES.binary),
            ...Array.from({ length: 20_000 }, () => piece(false, OPCODES.continuation)),
          ]),
          unchanged,
          65_536,
        ],
        [
          Buffer.concat(
            Array.from({ length: 20_000 }, () => encodeFrame({ opcode: OPCODES.binary, payload: Buffer.alloc(0) })),
          ),
          unchanged,
          65_536,
        ],
      ],
    },
    async ([frames, mutate, chunkSize]) => {
      const { socket, server } = await openRaw(port, accepted);
      const closed = Promise.withResolvers<Error | undefined>();
      let failure: Error | undefined;
      let received = 0;
      server.on('data', (bytes: Buffer) => void (received += bytes.length));
      server.on('error', (error) => void (failure = error));
      server.on('close', () => closed.resolve(failure));
      const bytes = mutate(frames);
      for (const chunk of chunksOf(bytes, chunkSize)) {
        if (socket.writable) socket.write(chunk);
        await new Promise((resolve) => setImmediate(resolve));
      }
      socket.resume();
      socket.end();
      const error = await closed.promise;
      accepted.length = 0;
      socket.destroy();
      assert.ok(error === undefined || error instanceof WebSocketError, error?.stack);
      assert.ok(received <= bytes.length, 'nothing is invented');
    },
  );
});
