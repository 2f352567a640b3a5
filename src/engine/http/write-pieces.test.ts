import assert from 'node:assert/strict';
import { PassThrough, Writable } from 'node:stream';
import { test } from 'node:test';
import { byteLength, writePieces } from '#engine/http/write-pieces.ts';

const piece = (i: number, size: number) => Buffer.alloc(size, `${i % 10}`);

const cases: Record<string, Buffer[]> = {
  nothing: [],
  'one piece': [piece(1, 10)],
  'many small pieces': Array.from({ length: 5000 }, (_, i) => piece(i, 100)),
  'pieces larger than a slab': [piece(1, 300_000), piece(2, 1), piece(3, 400_000)],
  'empty pieces': [Buffer.alloc(0), piece(1, 5), Buffer.alloc(0)],
};

for (const [name, pieces] of Object.entries(cases)) {
  test(`sends ${name} completely and in order`, async () => {
    const stream = new PassThrough();
    const received: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => received.push(chunk));
    writePieces(stream, pieces);
    await new Promise((resolve) => stream.once('end', resolve));
    assert.ok(Buffer.concat(received).equals(Buffer.concat(pieces)));
    assert.equal(byteLength(pieces), Buffer.concat(pieces).length);
  });
}

test('waits while the reader is slow, and stops when it disconnects', () => {
  let taken = 0;
  const stream = new Writable({ highWaterMark: 1, write: () => void taken++ });
  writePieces(
    stream,
    Array.from({ length: 100 }, (_, i) => piece(i, 100_000)),
  );
  assert.equal(taken, 1);
  assert.ok(stream.writableLength <= 200_000);
  stream.destroy();
});
