import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { duplexPair, type Duplex } from 'node:stream';
import { test } from 'node:test';
import { streamContent, DISK_PROTOCOL, encodeDiskLine, DiskReader, streamDisk } from '#api/storage/disk-stream.ts';
import { FakeClock } from '#client/testing/fake-clock.ts';
import { silentLog } from '#lib/log.ts';
import { clientHandshake } from '#lib/websocket-handshake.ts';
import { newNonce, WebSocketStream } from '#lib/websocket.ts';
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

function startTransfer(verb: 'exportdisk' | 'importdisk' | 'upload', claim = 'data') {
  const noted: string[] = [];
  const clock = new FakeClock();
  const [socket, far]: [Duplex, Duplex] = duplexPair();
  const handshake = Object.entries(clientHandshake(newNonce(), [DISK_PROTOCOL]));
  const headers = Object.fromEntries(handshake.map(([name, value]) => [name.toLowerCase(), value]));
  const upgrade = { request: { headers } as unknown as IncomingMessage, socket, head: Buffer.alloc(0) };
  const parts = { disks: fakeDisks(noted), clock, log: silentLog };
  const served = serveDisk(parts, { kind: 'disk', verb, namespace: 'lab', claim }, upgrade);
  return { noted, clock, served, far };
}

/** Reads the response to the handshake and returns the client's WebSocket. */
async function connectWebSocket(far: Duplex): Promise<WebSocketStream> {
  const head = await new Promise<Buffer>((resolve) => {
    far.once('data', (chunk: Buffer) => {
      // Further data belongs to the WebSocket.
      far.pause();
      resolve(chunk);
    });
  });
  const end = head.indexOf('\r\n\r\n') + 4;
  const stream = new WebSocketStream(far, { role: 'client', head: head.subarray(end) });
  stream.on('error', () => {});
  return stream;
}

test('exports a disk and closes it', async () => {
  const { noted, served, far } = startTransfer('exportdisk');
  const reader = new DiskReader((await connectWebSocket(far)) as AsyncIterable<Buffer>);
  const header = await reader.readHeader();
  const pieces: Buffer[] = [];
  for await (const piece of reader.readVerified(header)) pieces.push(piece);
  assert.equal(Buffer.concat(pieces).toString(), 'the ledger');
  await served;
  assert.deepEqual(noted, ['closed']);
});

test('imports a disk and sends its hash', async () => {
  const { noted, served, far } = startTransfer('importdisk');
  const stream = await connectWebSocket(far);
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
  test(`an upload ${sentence}`, async () => {
    const { noted, served, far } = startTransfer('upload');
    const stream = await connectWebSocket(far);
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

test('refuses to continue an upload at another offset', async () => {
  const { served, far, noted } = startTransfer('upload');
  const stream = await connectWebSocket(far);
  stream.write(Buffer.concat([encodeDiskLine({ size: 10, format: 'raw' }), encodeDiskLine({ offset: 3 })]));
  const reader = new DiskReader(stream as AsyncIterable<Buffer>);
  await reader.readProgress();
  assert.deepEqual(await reader.readAnswer(), { error: 'the client resumes at another offset than 0 or 4' });
  await served;
  assert.deepEqual(noted, ['closed']);
});

test('refuses data that is not a disk stream', async () => {
  const { served, far } = startTransfer('importdisk');
  const stream = await connectWebSocket(far);
  stream.write(Buffer.from('hello\n'));
  const answer = await new DiskReader(stream as AsyncIterable<Buffer>).readAnswer();
  assert.deepEqual(answer, { error: 'a line is not a JSON object' });
  await served;
});

test('closes the disk if the client disconnects', async () => {
  const { noted, served, far } = startTransfer('importdisk');
  const stream = await connectWebSocket(far);
  stream.write(encodeDiskLine({ size: 100, format: 'raw' }));
  stream.write(Buffer.from('half'));
  stream.destroy();
  await served;
  assert.deepEqual(noted, ['closed']);
});

test('closes an idle connection', async () => {
  const { noted, served, far, clock } = startTransfer('importdisk');
  const stream = await connectWebSocket(far);
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

test('refuses a disk in use before anything is sent', async () => {
  const { served } = startTransfer('importdisk', 'used');
  await assert.rejects(served, { name: 'ApiError', code: 409, message: 'it is in use by pod "p"' });
});
