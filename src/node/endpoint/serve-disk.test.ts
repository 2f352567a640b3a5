import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { test, type TestContext } from 'node:test';
import { streamContent, DISK_PROTOCOL, encodeDiskLine, DiskReader, streamDisk } from '#api/storage/disk-stream.ts';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { silentLog } from '#lib/log.ts';
import { connectWebSocket, serveUpgrades } from '#lib/testing/websocket-server.ts';
import type { WebSocketStream } from '#lib/websocket/websocket.ts';
import type { DiskAccess } from '#node/endpoint/endpoint-agent.ts';
import { serveDisk } from '#node/endpoint/serve-disk.ts';
import { DiskRefusedError } from '#node/volumes/volumes-port.ts';

const CONTENT = Buffer.from('the ledger');

/** Access to one disk, which records the calls. */
function fakeDisks(noted: string[]): DiskAccess {
  const close = async () => void noted.push('closed');
  return {
    async open() {
      const header = { size: CONTENT.length, format: 'raw', virtualSize: 4096 } as const;
      return {
        header,
        chunks: async function* () {
          yield CONTENT;
        },
        close,
      };
    },
    async replace(_, claim) {
      if (claim === 'used') throw new DiskRefusedError('it is in use by pod "p"');
      return {
        async receive(_header, chunks, { from }) {
          const pieces: Buffer[] = [];
          for await (const chunk of chunks) pieces.push(chunk);
          noted.push(`received ${Buffer.concat(pieces).toString()}${from === undefined ? '' : ` from ${from}`}`);
        },
        async readProgress() {
          return { offset: 4, hash: createHash('sha256').update(CONTENT.subarray(0, 4)) };
        },
        close,
      };
    },
  };
}

type Verb = 'exportdisk' | 'importdisk' | 'upload';

/** Serves one disk and connects to it. `served` settles when the server is done. */
async function startTransfer(t: TestContext, verb: Verb) {
  const noted: string[] = [];
  const clock = new FakeClock();
  const served = Promise.withResolvers<void>();
  const port = await serveUpgrades(t, (upgrade) => {
    const parts = { disks: fakeDisks(noted), clock, log: silentLog };
    serveDisk(parts, { kind: 'disk', verb, namespace: 'lab', claim: 'data' }, upgrade).then(
      served.resolve,
      served.reject,
    );
  });
  const stream: WebSocketStream = await connectWebSocket(port, [DISK_PROTOCOL]);
  stream.on('error', () => {});
  t.after(() => stream.destroy());
  return { noted, clock, served: served.promise, stream };
}

test('exports a disk and closes it', async (t) => {
  const { noted, served, stream } = await startTransfer(t, 'exportdisk');
  const reader = new DiskReader(stream as AsyncIterable<Buffer>);
  const header = await reader.readHeader();
  const pieces: Buffer[] = [];
  for await (const piece of reader.readVerified(header)) pieces.push(piece);
  assert.equal(Buffer.concat(pieces).toString(), 'the ledger');
  await served;
  assert.deepEqual(noted, ['closed']);
});

test('imports a disk and sends its hash', async (t) => {
  const { noted, served, stream } = await startTransfer(t, 'importdisk');
  const chunks = async function* () {
    yield CONTENT;
  };
  for await (const chunk of streamDisk({ size: CONTENT.length, format: 'raw' }, chunks())) stream.write(chunk);
  const answer = await new DiskReader(stream as AsyncIterable<Buffer>).readAnswer();
  assert.match('sha256' in answer ? answer.sha256 : '', /^[0-9a-f]{64}$/);
  await served;
  assert.deepEqual(noted, ['received the ledger', 'closed']);
});

const resumeCases: Record<string, { offset: number; noted: string }> = {
  'continues at the offset of the earlier upload': { offset: 4, noted: 'received ledger from 4' },
  'starts over if the client does not continue': { offset: 0, noted: 'received the ledger from 0' },
};
for (const [sentence, { offset, noted: want }] of Object.entries(resumeCases)) {
  test(`an upload ${sentence}`, async (t) => {
    const { noted, served, stream } = await startTransfer(t, 'upload');
    const header = { size: CONTENT.length, format: 'raw' } as const;
    stream.write(encodeDiskLine(header));
    const reader = new DiskReader(stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>);
    const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes);
    assert.deepEqual(await reader.readProgress(), { offset: 4, sha256: sha256(CONTENT.subarray(0, 4)).digest('hex') });
    stream.write(encodeDiskLine({ offset }));
    const chunks = async function* () {
      yield CONTENT.subarray(offset);
    };
    const resumed = { offset, hash: sha256(CONTENT.subarray(0, offset)) };
    for await (const chunk of streamContent(header, chunks(), resumed)) stream.write(chunk);
    assert.deepEqual(await reader.readAnswer(), { sha256: sha256(CONTENT).digest('hex') });
    await served;
    assert.deepEqual(noted, [want, 'closed']);
  });
}

test('refuses to continue an upload at another offset', async (t) => {
  const { served, stream, noted } = await startTransfer(t, 'upload');
  stream.write(Buffer.concat([encodeDiskLine({ size: 10, format: 'raw' }), encodeDiskLine({ offset: 3 })]));
  const reader = new DiskReader(stream as AsyncIterable<Buffer>);
  await reader.readProgress();
  assert.deepEqual(await reader.readAnswer(), { error: 'the client resumes at another offset than 0 or 4' });
  await served;
  assert.deepEqual(noted, ['closed']);
});

test('does not close the connection of a refused client before it has read the refusal', async (t) => {
  const { clock, served, stream } = await startTransfer(t, 'importdisk');
  stream.write(Buffer.from('hello\n'));
  await served;
  const chunks = stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
  // A client that is busy sending.
  await new Promise<void>((resolve, reject) =>
    stream.write(Buffer.alloc(1024 * 1024), (error) => (error ? reject(error) : resolve())),
  );
  assert.deepEqual(await new DiskReader(chunks).readAnswer(), { error: 'a line is not a JSON object' });
  assert.equal(stream.writable, true);
  await clock.advance(5000);
  for await (const _ of chunks) assert.fail('nothing follows the refusal');
});

test('refuses data that is not a disk stream', async (t) => {
  const { served, stream } = await startTransfer(t, 'importdisk');
  stream.write(Buffer.from('hello\n'));
  const answer = await new DiskReader(stream as AsyncIterable<Buffer>).readAnswer();
  assert.deepEqual(answer, { error: 'a line is not a JSON object' });
  await served;
});

test('closes the disk if the client disconnects', async (t) => {
  const { noted, served, stream } = await startTransfer(t, 'importdisk');
  stream.write(encodeDiskLine({ size: 100, format: 'raw' }));
  stream.write(Buffer.from('half'));
  stream.destroy();
  await served;
  assert.deepEqual(noted, ['closed']);
});

test('closes an idle connection', async (t) => {
  const { noted, served, stream, clock } = await startTransfer(t, 'importdisk');
  stream.resume();
  const failed = once(stream, 'error');
  await clock.advance(119_000);
  assert.deepEqual(noted, []);
  await clock.advance(1000);
  await served;
  const [error] = (await failed) as [Error];
  assert.equal(error.message, 'no data was transferred for 120 seconds');
  assert.deepEqual(noted, ['closed']);
});

test('refuses a disk in use before anything is sent', async (t) => {
  const served = Promise.withResolvers<void>();
  const port = await serveUpgrades(t, (upgrade) => {
    const parts = { disks: fakeDisks([]), clock: new FakeClock(), log: silentLog };
    const route = { kind: 'disk', verb: 'importdisk', namespace: 'lab', claim: 'used' } as const;
    serveDisk(parts, route, upgrade).then(served.resolve, served.reject);
    served.promise.catch(() => upgrade.socket.end('HTTP/1.1 409 Conflict\r\n\r\n'));
  });
  await assert.rejects(connectWebSocket(port, [DISK_PROTOCOL]), { message: 'the server answered 409' });
  await assert.rejects(served.promise, { name: 'ApiError', code: 409, message: 'it is in use by pod "p"' });
});
