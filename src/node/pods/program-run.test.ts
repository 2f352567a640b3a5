import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '#client/testing/fake-clock.ts';
import { OUTPUT_BYTES, ProgramRun } from '#node/pods/program-run.ts';

/** A run, and the mouth of its process. */
function scene() {
  const run = new ProgramRun(new FakeClock(), () => undefined);
  const { promise: exited, resolve: exit } = Promise.withResolvers<number>();
  let say = (_chunk: Buffer): void => undefined;
  run.start(() => ({ exited, onOutput: (listener) => void (say = listener), kill: () => undefined }), [], {});
  return { run, exit, say: (chunk: string | Buffer) => say(Buffer.from(chunk)) };
}

async function all(chunks: AsyncIterable<Buffer>): Promise<string> {
  let text = '';
  for await (const chunk of chunks) text += chunk.toString();
  return text;
}

test('who follows gets what was said and what comes, until the end', async () => {
  const { run, say, exit } = scene();
  say('before ');
  const heard = all(run.follow(new AbortController().signal));
  await Promise.resolve();
  say('after');
  exit(0);
  assert.equal(await heard, 'before after');
});

test('one that ran for long is no failed start any more', async () => {
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

test('only the last of what was said is kept', () => {
  const { run, say } = scene();
  for (const letter of 'abc') say(letter.repeat(OUTPUT_BYTES / 2));
  assert.equal(run.read().length, OUTPUT_BYTES);
  assert.equal(run.read().includes('a'), false);
});

test('who follows and does not read is cut off', async () => {
  const { run, say } = scene();
  const reader = run.follow(new AbortController().signal);
  await reader.next();
  const chunk = Buffer.alloc(OUTPUT_BYTES, 'x');
  for (let count = 0; count < 100; count++) say(chunk);
  let bytes = 0;
  for await (const { length } of reader) bytes += length;
  assert.ok(bytes > 0 && bytes <= 1024 * 1024, String(bytes));
});
