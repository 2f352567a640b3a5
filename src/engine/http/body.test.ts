import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { BodyMemory } from '#engine/http/body-memory.ts';
import { readRequestBody } from '#engine/http/body.ts';

const MIB = 1024 * 1024;

test('bytes that are only announced keep nobody out', async () => {
  const bodies = new BodyMemory();
  const announced = Array.from({ length: 11 }, () => new PassThrough());
  const reads = announced.map((stream) => readRequestBody(stream, String(3 * MIB), bodies.open('a')));
  const account = bodies.open('a');
  assert.equal(account.add(32 * MIB), true);
  account.close();
  for (const stream of announced) stream.end('{}');
  assert.deepEqual(await Promise.all(reads), Array(11).fill(Buffer.from('{}')));
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
