import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { encodeDiskLine, DiskReader, streamDisk } from '#api/storage/disk-stream.ts';

async function* inChunks(text: Buffer, size: number) {
  for (let at = 0; at < text.length; at += size) yield text.subarray(at, at + size);
}
async function collect(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of chunks) pieces.push(piece);
  return Buffer.concat(pieces);
}
const content = Buffer.from('{"looks":"like a line"}\n\n\0 and more');
const header = { size: content.length, format: 'raw', virtualSize: 4096 } as const;

for (const size of [1, 3, 7, 64, 10_000]) {
  test(`the reader returns header and content in chunks of ${size} bytes`, async () => {
    const sent = await collect(streamDisk(header, inChunks(content, 5)));
    const reader = new DiskReader(inChunks(sent, size));
    assert.deepEqual(await reader.readHeader(), header);
    assert.deepEqual(await collect(reader.readVerified(header)), content);
  });
}

test('an empty disk is transferred', async () => {
  const empty = { size: 0, format: 'qcow2' } as const;
  const reader = new DiskReader(streamDisk(empty, inChunks(Buffer.alloc(0), 1)));
  assert.deepEqual(await collect(reader.readVerified(await reader.readHeader())), Buffer.alloc(0));
});

const sha256 = createHash('sha256').update('abc').digest('hex');
const broken: Record<string, { sent: (string | Buffer)[]; message: RegExp }> = {
  'an empty stream': { sent: [], message: /ended too early/ },
  'a header that is not JSON': { sent: ['raw\n'], message: /not a JSON object/ },
  'a header without a size': { sent: ['{"format":"raw"}\n'], message: /no valid size/ },
  'a negative size': { sent: ['{"format":"raw","size":-1}\n'], message: /no valid size/ },
  'a fractional size': { sent: ['{"format":"raw","size":1.5}\n'], message: /no valid size/ },
  'an unsupported format': { sent: ['{"format":"vmdk","size":3}\n'], message: /no valid size and format/ },
  'a line without an end': { sent: ['x'.repeat(5000)], message: /longer than 4096 bytes/ },
  'fewer bytes than announced': { sent: ['{"format":"raw","size":3}\n', 'ab'], message: /ended too early/ },
  'no trailer': { sent: ['{"format":"raw","size":3}\n', 'abc'], message: /ended too early/ },
  'a trailer without a digest': { sent: ['{"format":"raw","size":3}\n', 'abc{}\n'], message: /no valid sha256/ },
  'bytes that do not match the hash': {
    sent: ['{"format":"raw","size":3}\n', 'abd', encodeDiskLine({ sha256 })],
    message: /do not match the sha256/,
  },
  'an error of the sender': {
    sent: ['{"format":"raw","size":3}\n', 'abc', encodeDiskLine({ error: 'the disk broke' })],
    message: /the disk broke/,
  },
};
for (const [title, { sent, message }] of Object.entries(broken)) {
  test(`refuses ${title}`, async () => {
    const reader = new DiskReader(inChunks(Buffer.concat(sent.map((part) => Buffer.from(part))), 2));
    await assert.rejects(async () => await collect(reader.readVerified(await reader.readHeader())), {
      name: 'DiskStreamError',
      message,
    });
  });
}

test('sending more or fewer bytes than announced fails', async () => {
  const chunks = () => inChunks(Buffer.from('abcd'), 2);
  await assert.rejects(collect(streamDisk({ size: 3, format: 'raw' }, chunks())), /more than 3 bytes/);
  await assert.rejects(
    collect(streamDisk({ size: 5, format: 'raw' }, chunks())),
    /the content has 4 bytes; expected 5/,
  );
});

const refusals: Record<string, { sent: object; reason: string | undefined }> = {
  'a reason that it sends': { sent: { error: 'no', reason: 'NoRoom' }, reason: 'NoRoom' },
  'a reason that it does not know': { sent: { error: 'no', reason: 'Tired' }, reason: undefined },
  'no reason': { sent: { error: 'the disk broke' }, reason: undefined },
  'the message of an earlier version about another transfer': {
    sent: { error: 'PersistentVolume "pv" is being exported or imported' },
    reason: 'InTransfer',
  },
  'the message of an earlier version about existing content': {
    sent: { error: 'PersistentVolume "pv" has content already, which would be lost' },
    reason: 'HasContent',
  },
};
for (const [title, { sent, reason }] of Object.entries(refusals)) {
  test(`reads the refusal of a node with ${title}`, async () => {
    const read = () => new DiskReader(inChunks(Buffer.from(`${JSON.stringify(sent)}\n`), 7));
    for (const refusal of [await read().readAnswer(), await read().readProgress()]) {
      assert.equal('error' in refusal ? refusal.reason : 'accepted', reason);
    }
  });
}

test('a long error is truncated and keeps its reason', () => {
  const line = encodeDiskLine({ error: '"'.repeat(10_000), reason: 'NoRoom' });
  assert.ok(line.length <= 4096);
  assert.match(line.toString(), /"reason":"NoRoom"/);
});
