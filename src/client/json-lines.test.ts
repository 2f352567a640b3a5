import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { jsonLines } from '#client/json-lines.ts';

async function* chunked(bytes: Buffer, sizes: readonly number[]): AsyncGenerator<Buffer> {
  let at = 0;
  for (let i = 0; at < bytes.length; i++) {
    const size = sizes.length === 0 ? bytes.length : sizes[i % sizes.length]!;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

async function read(text: string, sizes: readonly number[] = [], maxLineBytes?: number): Promise<unknown[]> {
  const values: unknown[] = [];
  for await (const value of jsonLines(chunked(Buffer.from(text), sizes), { what: 'GET /x', maxLineBytes }))
    values.push(value);
  return values;
}

test('parses any values, regardless of the chunks', async () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(fc.array(fc.jsonValue()), sizes, async (values, cuts) => {
      const text = values.map((value) => `${JSON.stringify(value)}\n`).join('');
      assert.deepEqual(await read(text, cuts), JSON.parse(JSON.stringify(values)));
    }),
    { numRuns: 200 },
  );
});

const faults: Record<string, { text: string; max?: number; want: RegExp }> = {
  'a stream that ends inside a line': { text: '{"a":1}\n{"b":', want: /ended inside a line/ },
  'a complete value without a line end': { text: '1\n23', want: /ended inside a line/ },
  'a line that is too long': { text: '"123456789"\n', max: 8, want: /longer than 8 bytes/ },
  'a line that is too long and never ends': { text: '"123456789', max: 8, want: /longer than 8 bytes/ },
  'a line that is not JSON': { text: '{"a":1}\nnonsense\n', want: /not JSON/ },
};

for (const [sentence, { text, max, want }] of Object.entries(faults)) {
  test(`refuses ${sentence}`, async () => {
    await assert.rejects(read(text, [3], max), want);
    await assert.rejects(read(text, [], max), want);
  });
}

test('skips empty lines', async () => {
  assert.deepEqual(await read('\n1\r\n\n2\n'), [1, 2]);
});
