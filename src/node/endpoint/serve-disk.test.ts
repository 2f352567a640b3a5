import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { duplexPair, type Duplex } from 'node:stream';
import { test } from 'node:test';
import { contentStream, DISK_PROTOCOL, diskLine, DiskReader, diskStream } from '#api/disk-stream.ts';
import { FakeClock } from '#client/testing/fake-clock.ts';
import { silentLog } from '#lib/log.ts';
import { clientHandshake } from '#lib/websocket-handshake.ts';
import { nonce, WebSocketStream } from '#lib/websocket.ts';
import type { DiskDoor } from '#node/endpoint/endpoint-agent.ts';
import { serveDisk } from '#node/endpoint/serve-disk.ts';
import { DiskRefused } from '#node/volumes-port.ts';

const CONTENT = Buffer.from('the ledger');

/** One disk; notes what becomes of it. */
function aDoor(noted: string[]): DiskDoor {
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
      if (claim === 'used') throw new DiskRefused('it is in use by pod "p"');
      return {
        async receive(_header, chunks, { from }) {
          const pieces: Buffer[] = [];
          for await (const chunk of chunks) pieces.push(chunk);
          noted.push(`received ${Buffer.concat(pieces).toString()}${from === undefined ? '' : ` from ${from}`}`);
        },
        async begun() {
          return { offset: 4, hash: createHash('sha256').update(CONTENT.subarray(0, 4)) };
        },
        close,
      };
    },
  };
}

function ask(verb: 'exportdisk' | 'importdisk' | 'upload', claim = 'data') {
  const noted: string[] = [];
  const clock = new FakeClock();
  const [socket, far]: [Duplex, Duplex] = duplexPair();
  const asked = Object.entries(clientHandshake(nonce(), [DISK_PROTOCOL]));
  const headers = Object.fromEntries(asked.map(([name, value]) => [name.toLowerCase(), value]));
  const upgrading = { request: { headers } as unknown as IncomingMessage, socket, head: Buffer.alloc(0) };
  const parts = { door: aDoor(noted), clock, log: silentLog };
  const served = serveDisk(parts, { kind: 'disk', verb, namespace: 'lab', claim }, upgrading);
  return { noted, clock, served, far };
}

/** After the answer to the handshake. */
async function connected(far: Duplex): Promise<WebSocketStream> {
  const head = await new Promise<Buffer>((resolve) => {
    far.once('data', (chunk: Buffer) => {
      // What comes next is the WebSocket's.
      far.pause();
      resolve(chunk);
    });
  });
  const end = head.indexOf('\r\n\r\n') + 4;
  const stream = new WebSocketStream(far, { role: 'client', head: head.subarray(end) });
  stream.on('error', () => {});
  return stream;
}

test('a disk goes out, and is closed then', async () => {
  const { noted, served, far } = ask('exportdisk');
  const reader = new DiskReader((await connected(far)) as AsyncIterable<Buffer>);
  const header = await reader.header();
  const pieces: Buffer[] = [];
  for await (const piece of reader.verified(header)) pieces.push(piece);
  assert.equal(Buffer.concat(pieces).toString(), 'the ledger');
  await served;
  assert.deepEqual(noted, ['closed']);
});

test('a disk comes in and is answered', async () => {
  const { noted, served, far } = ask('importdisk');
  const stream = await connected(far);
  const chunks = async function* () {
    yield CONTENT;
  };
  for await (const chunk of diskStream({ size: CONTENT.length, format: 'raw' }, chunks())) stream.write(chunk);
  const answer = await new DiskReader(stream as AsyncIterable<Buffer>).answer();
  assert.match('sha256' in answer ? answer.sha256 : '', /^[0-9a-f]{64}$/);
  await served;
  assert.deepEqual(noted, ['received the ledger', 'closed']);
});

const goesOn: Record<string, { offset: number; noted: string }> = {
  'goes on where it stopped': { offset: 4, noted: 'received ledger from 4' },
  'begins anew where what is there is not its own': { offset: 0, noted: 'received the ledger from 0' },
};
for (const [title, { offset, noted: want }] of Object.entries(goesOn)) {
  test(`an upload ${title}`, async () => {
    const { noted, served, far } = ask('upload');
    const stream = await connected(far);
    const header = { size: CONTENT.length, format: 'raw' } as const;
    stream.write(diskLine(header));
    const reader = new DiskReader(stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>);
    const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes);
    assert.deepEqual(await reader.progress(), { offset: 4, sha256: sha256(CONTENT.subarray(0, 4)).digest('hex') });
    stream.write(diskLine({ offset }));
    const chunks = async function* () {
      yield CONTENT.subarray(offset);
    };
    const begun = { offset, hash: sha256(CONTENT.subarray(0, offset)) };
    for await (const chunk of contentStream(header, chunks(), begun)) stream.write(chunk);
    assert.deepEqual(await reader.answer(), { sha256: sha256(CONTENT).digest('hex') });
    await served;
    assert.deepEqual(noted, [want, 'closed']);
  });
}

test('an upload goes on nowhere else', async () => {
  const { served, far, noted } = ask('upload');
  const stream = await connected(far);
  stream.write(Buffer.concat([diskLine({ size: 10, format: 'raw' }), diskLine({ offset: 3 })]));
  const reader = new DiskReader(stream as AsyncIterable<Buffer>);
  await reader.progress();
  assert.deepEqual(await reader.answer(), { error: 'the client resumes at another offset than 0 or 4' });
  await served;
  assert.deepEqual(noted, ['closed']);
});

test('what is no disk is told so', async () => {
  const { served, far } = ask('importdisk');
  const stream = await connected(far);
  stream.write(Buffer.from('hello\n'));
  const answer = await new DiskReader(stream as AsyncIterable<Buffer>).answer();
  assert.deepEqual(answer, { error: 'a line is not a JSON object' });
  await served;
});

test('who leaves in the middle leaves the disk', async () => {
  const { noted, served, far } = ask('importdisk');
  const stream = await connected(far);
  stream.write(diskLine({ size: 100, format: 'raw' }));
  stream.write(Buffer.from('half'));
  stream.destroy();
  await served;
  assert.deepEqual(noted, ['closed']);
});

test('who says nothing for long is let go', async () => {
  const { noted, served, far, clock } = ask('importdisk');
  const stream = await connected(far);
  stream.resume();
  const told = once(stream, 'error');
  await clock.advance(119_000);
  assert.deepEqual(noted, []);
  await clock.advance(1000);
  await served;
  const [error] = (await told) as [Error];
  assert.equal(error.message, 'nothing came for 120 seconds');
  assert.deepEqual(noted, ['closed']);
});

test('a disk that is in use is refused before anything is sent', async () => {
  const { served } = ask('importdisk', 'used');
  await assert.rejects(served, { name: 'ApiError', code: 409, message: 'it is in use by pod "p"' });
});
