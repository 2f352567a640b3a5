import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { BodyMemory } from '#engine/http/body-memory.ts';
import { readRequestBody } from '#engine/http/body.ts';

const MIB = 1024 * 1024;

test('bytes that are only announced keep no other user out', async () => {
  const bodies = new BodyMemory();
  const announced = Array.from({ length: 20 * 10 }, () => new PassThrough());
  const reads = announced.map((stream, index) =>
    readRequestBody(stream, String(3 * MIB), bodies.open(`u${index % 20}`)),
  );
  const account = bodies.open('another');
  assert.equal(account.add(32 * MIB), true);
  account.close();
  for (const stream of announced) stream.end('{}');
  assert.deepEqual(await Promise.all(reads), Array(announced.length).fill(Buffer.from('{}')));
});

test('a body that its user has no room for is refused when it is announced', async () => {
  const bodies = new BodyMemory();
  bodies.open('a').add(30 * MIB);
  await assert.rejects(readRequestBody(new PassThrough(), String(3 * MIB), bodies.open('a')), { code: 429 });
});

test('a body that does not fit is refused, and its bytes are given back', async () => {
  const bodies = new BodyMemory();
  const held = bodies.open('a');
  held.add(31 * MIB);
  const stream = new PassThrough();
  const read = readRequestBody(stream, undefined, bodies.open('a'));
  stream.write(Buffer.alloc(MIB / 2));
  stream.write(Buffer.alloc(MIB));
  await assert.rejects(read, { code: 429 });
  assert.equal(bodies.open('a').add(MIB), true);
});
