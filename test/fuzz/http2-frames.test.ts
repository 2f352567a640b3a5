/** Frames of HTTP/2 clients over real TLS, with damaged headers, lengths, streams and header blocks. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import fc from 'fast-check';
import { checkInputs } from '#test/fuzz/check-inputs.ts';
import { byteMutations, chunkSizes, chunksOf, type Mutation } from '#test/fuzz/mutations.ts';
import { frame, frameTypes, getHeaders, greeting, headersFrame, openTls } from '#test/https/raw-tls.ts';
import { startFrontServer } from '#test/support/front-server.ts';
import { openHttp2Session, sendHttp2Request } from '#test/support/raw-https.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';
const MAX_FRAME = 16_384;
const unchanged: Mutation = (bytes) => bytes;

const stream = fc.constantFrom(0, 1, 2, 3, 5, 2 ** 31 - 1, 2 ** 32 - 1);
const anyFrame = fc
  .record({
    type: fc.oneof(fc.constantFrom(...Object.values(frameTypes)), fc.nat(12)),
    flags: fc.nat(255),
    stream,
    payload: fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
  })
  .map(({ type, ...parts }) => frame(type, parts));
const request = fc
  .tuple(
    fc.constantFrom(1, 3, 5),
    fc.constantFrom('GET', 'POST', 'PUT', 'CONNECT', 'OPTIONS', '', 'G T'),
    fc.constantFrom('/livez', MAPS, `${MAPS}?watch=1`, '*', '', '//', '/%', `/${'x'.repeat(5000)}`),
    fc.dictionary(
      fc.constantFrom('content-length', 'te', 'connection', 'Upper', ':path', 'host', 'authorization', 'x'),
      fc.constantFrom('', '-1', '99999999999', 'a\nb', 'trailers', 'x'.repeat(2000)),
    ),
    fc.boolean(),
  )
  .map(([id, method, path, more, open]) =>
    headersFrame(id, { ...getHeaders(path), ':method': method, ...more }, { open }),
  );
const body = fc
  .tuple(fc.constantFrom(1, 3, 5), fc.constantFrom(0, 1, 8, 9), fc.uint8Array({ maxLength: 300 }))
  .map(([id, flags, bytes]) => frame(frameTypes.data, { stream: id, flags, payload: Buffer.from(bytes) }));
const many = (one: Buffer, count: number) => Buffer.concat(Array.from({ length: count }, () => one));

test('no frame of a client crashes the server, stops it or blocks the event loop', async (t) => {
  const front = await startFrontServer(t);
  t.after(() => front.stop());
  const bystander = openHttp2Session(t, front.admin);
  await checkInputs(
    t,
    {
      runs: 120,
      values: fc.tuple(
        fc
          .array(fc.oneof(request, body, anyFrame), { minLength: 1, maxLength: 8 })
          .map((frames): Buffer => Buffer.concat(frames)),
        fc.oneof(fc.constant(unchanged), byteMutations),
        chunkSizes,
        fc.boolean(),
      ),
      always: [
        [many(frame(frameTypes.ping, { payload: Buffer.alloc(8) }), 5000), unchanged, 65_536, true],
        [many(frame(frameTypes.settings), 5000), unchanged, 65_536, true],
        [many(frame(frameTypes.data, { stream: 1 }), 5000), unchanged, 65_536, true],
        [
          Buffer.concat(
            Array.from({ length: 500 }, (_, i) =>
              Buffer.concat([
                headersFrame(2 * i + 1, getHeaders('/livez'), { open: true }),
                frame(frameTypes.rstStream, { stream: 2 * i + 1, payload: Buffer.alloc(4) }),
              ]),
            ),
          ),
          unchanged,
          65_536,
          true,
        ],
        [
          frame(frameTypes.headers, { stream: 1, flags: 4, payload: Buffer.alloc(MAX_FRAME, 0x82) }),
          unchanged,
          65_536,
          true,
        ],
      ],
    },
    async ([frames, mutate, chunkSize, hasGreeting]) => {
      const socket = await openTls(front.admin, 'h2');
      const closed = once(socket, 'close');
      socket.resume();
      const bytes = mutate(frames);
      for (const chunk of chunksOf(hasGreeting ? Buffer.concat([greeting, bytes]) : bytes, chunkSize)) {
        if (socket.writable) socket.write(chunk);
        await new Promise((resolve) => setImmediate(resolve));
      }
      const { status } = await sendHttp2Request(bystander, front.admin, { path: '/api/v1/namespaces/default' });
      assert.ok(status === 200 || status === 404, `a bystander got ${status}`);
      socket.destroy();
      await closed;
    },
  );
});
