import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { Duplex } from 'node:stream';
import { test } from 'node:test';
import { forwardUdp } from '#cli/commands/access/forward-udp.ts';
import { systemClock } from '#lib/clock.ts';
import type { WebSocketStream } from '#lib/websocket/websocket.ts';

test('drops datagrams that the stream cannot accept', async (t) => {
  const taken: number[] = [];
  const stuck = new Duplex({
    highWaterMark: 1000,
    read() {},
    // Never completes, like a connection whose other side reads nothing.
    write: (chunk: Buffer) => void taken.push(chunk.length),
  });
  const port = { local: 0, remote: 53, protocol: 'udp' } as const;
  const forwarding = await forwardUdp({
    ...{ address: '127.0.0.1', port, clock: systemClock, report: () => {} },
    open: async () => stuck as unknown as WebSocketStream,
  });
  const socket = createSocket('udp4');
  t.after(() => {
    socket.close();
    forwarding.close();
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const send = (bytes: number) =>
    new Promise<void>((resolve) => socket.send(Buffer.alloc(bytes), forwarding.port, '127.0.0.1', () => resolve()));
  for (let i = 0; i < 200; i++) await send(100);
  // The response to the last datagram shows that all earlier ones were processed.
  stuck.push('back');
  await once(socket, 'message');
  assert.deepEqual(taken, [100]);
  assert.ok(stuck.writableLength <= 2000, `${stuck.writableLength} bytes are kept`);
});
