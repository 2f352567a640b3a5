import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { OUTPUT_BYTES, ProgramRun } from '#node/pods/program-run.ts';

/** A started run, with functions for its output and exit. */
function scene() {
  const run = new ProgramRun(new FakeClock(), () => undefined);
  const { promise: exited, resolve: exit } = Promise.withResolvers<number>();
  let write = (_chunk: Buffer): void => undefined;
  run.start(() => ({ exited, onOutput: (listener) => void (write = listener), kill: () => undefined }), [], {});
  return { run, exit, write: (chunk: string | Buffer) => write(Buffer.from(chunk)) };
}

async function readAll(chunks: AsyncIterable<Buffer>): Promise<string> {
  let text = '';
  for await (const chunk of chunks) text += chunk.toString();
  return text;
}

test('a follower gets the earlier and the new output until the process ends', async () => {
  const { run, write, exit } = scene();
  write('before ');
  const output = readAll(run.follow(new AbortController().signal));
  await Promise.resolve();
  write('after');
  exit(0);
  assert.equal(await output, 'before after');
});

test('a long run resets the number of quick exits', async () => {
  const clock = new FakeClock();
  const run = new ProgramRun(clock, () => undefined, { starts: 3, lastExit: undefined });
  const quickExits: number[] = [];
  for (const seconds of [1, 1, 600, 1]) {
    const { promise: exited, resolve: exit } = Promise.withResolvers<number>();
    run.start(() => ({ exited, onOutput: () => undefined, kill: () => undefined }), [], {});
    await clock.advance(seconds * 1000);
    exit(1);
    await clock.advance(0);
    quickExits.push(run.state.quickExits);
  }
  assert.deepEqual(quickExits, [1, 2, 1, 2]);
  assert.equal(run.state.starts, 7);
});

test('only the last output is kept', () => {
  const { run, write } = scene();
  for (const letter of 'abc') write(letter.repeat(OUTPUT_BYTES / 2));
  assert.equal(run.read().length, OUTPUT_BYTES);
  assert.equal(run.read().includes('a'), false);
});

test('a follower that does not read is cut off', async () => {
  const { run, write } = scene();
  const reader = run.follow(new AbortController().signal);
  await reader.next();
  const chunk = Buffer.alloc(OUTPUT_BYTES, 'x');
  for (let count = 0; count < 100; count++) write(chunk);
  let bytes = 0;
  for await (const { length } of reader) bytes += length;
  assert.ok(bytes > 0 && bytes <= 1024 * 1024, String(bytes));
});
