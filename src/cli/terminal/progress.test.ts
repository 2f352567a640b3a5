import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bytesText, reportProgress } from '#cli/terminal/progress.ts';

const texts: Record<string, number> = {
  '0 B': 0,
  '1023 B': 1023,
  '1.0 KiB': 1024,
  '1.5 MiB': 1.5 * 1024 ** 2,
  '64.0 GiB': 64 * 1024 ** 3,
  '2048.0 PiB': 2 * 1024 ** 6,
};
for (const [want, bytes] of Object.entries(texts)) test(want, () => assert.equal(bytesText(bytes), want));

test('reports a transfer at start and end, and at intervals', async () => {
  let now = 0;
  const clock = { now: () => 0, elapsed: () => now, after: () => () => {} };
  const reported: string[] = [];
  async function* chunks() {
    for (let i = 0; i < 4; i++) {
      now += 3000;
      yield Buffer.alloc(1024);
    }
  }
  let bytes = 0;
  for await (const chunk of reportProgress('disk a', 4096, chunks(), {
    clock,
    report: (line) => void reported.push(line),
  })) {
    bytes += chunk.length;
  }
  assert.equal(bytes, 4096);
  assert.deepEqual(reported, ['disk a: 4.0 KiB', 'disk a: 2.0 KiB of 4.0 KiB (50%), 341 B/s', 'disk a: done, 341 B/s']);
});
