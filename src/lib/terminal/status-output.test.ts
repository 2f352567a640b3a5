import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StatusOutput, type StatusOptions } from '#lib/terminal/status-output.ts';
import { trackTransfer } from '#lib/terminal/track-transfer.ts';

const CLEAR = '\r\u001b[2K';
const [HIDE, SHOW] = ['\u001b[?25l', '\u001b[?25h'];

class FakeStream {
  text = '';
  columns: number | undefined = 20;
  readonly isTTY: boolean;
  readonly #listeners = new Set<() => void>();
  constructor(isTTY: boolean) {
    this.isTTY = isTTY;
  }
  write(text: string): void {
    this.text += text;
  }
  on(_: 'resize', listener: () => void): void {
    this.#listeners.add(listener);
  }
  off(_: 'resize', listener: () => void): void {
    this.#listeners.delete(listener);
  }
  resize(columns: number): void {
    this.columns = columns;
    for (const listener of this.#listeners) listener();
  }
}

function scene({ isTTY = true, env = {}, onInterrupt }: { isTTY?: boolean } & Partial<StatusOptions> = {}) {
  const time = { ms: 0 };
  const clock = { now: () => time.ms, elapsed: () => time.ms, after: () => () => {} };
  const stream = new FakeStream(isTTY);
  return { time, stream, status: new StatusOutput(stream, { clock, env, ...(onInterrupt && { onInterrupt }) }) };
}

test('on a terminal, redraws one line, cuts it at the width, and keeps the last one', () => {
  const { time, stream, status } = scene();
  const progress = status.begin();
  progress.show({ plain: 'p', live: (columns) => `${columns} columns, and more` });
  time.ms += 50;
  progress.show({ plain: 'p', live: () => 'too early to be drawn' });
  time.ms += 50;
  progress.show({ plain: 'two' });
  progress.end('disk a: done, at a speed of which the terminal is too narrow to tell');
  assert.equal(
    stream.text,
    `${HIDE}${CLEAR}19 columns, and mor${CLEAR}two${CLEAR}disk a: done, at a speed of which the terminal is too narrow to tell\n${SHOW}`,
  );
});

test('on a terminal, keeps the last state if the work fails', () => {
  const { stream, status } = scene();
  const progress = status.begin();
  progress.show({ plain: '40%' });
  progress.show({ plain: '41%' });
  progress.end();
  assert.equal(stream.text, `${HIDE}${CLEAR}40%${CLEAR}41%\n${SHOW}`);
});

test('prints other lines above the live line', () => {
  const { stream, status } = scene();
  status.report('first');
  const progress = status.begin();
  progress.show({ plain: '1%' });
  status.report('second');
  progress.end('done');
  status.report('third');
  assert.equal(stream.text, `first\n${HIDE}${CLEAR}1%${CLEAR}second\n${CLEAR}1%${CLEAR}done\n${SHOW}third\n`);
});

test('redraws the line when the width changes, also if the terminal reports none', () => {
  const { stream, status } = scene();
  const progress = status.begin();
  progress.show({ plain: '', live: String });
  stream.resize(40);
  stream.resize(0);
  progress.end('');
  stream.resize(50);
  assert.equal(stream.text, `${HIDE}${CLEAR}19${CLEAR}39${CLEAR}79${CLEAR}\n${SHOW}`);
});

test('shows the cursor again if a signal ends the process', () => {
  const restores = new Set<() => void>();
  const { stream, status } = scene({
    onInterrupt(restore) {
      restores.add(restore);
      return () => void restores.delete(restore);
    },
  });
  const progress = status.begin();
  for (const restore of restores) restore();
  assert.equal(stream.text, `${HIDE}\n${SHOW}`);
  progress.end();
  assert.equal(restores.size, 0);
});

for (const [title, options] of Object.entries({
  'a pipe': { isTTY: false },
  'a dumb terminal': { env: { TERM: 'dumb' } },
  'a CI system': { env: { CI: '1' } },
})) {
  test(`prints plain lines at intervals to ${title}`, () => {
    const { time, stream, status } = scene(options);
    const progress = status.begin();
    for (let percent = 0; percent < 10; percent++, time.ms += 1000) progress.show({ plain: `${percent}%` });
    progress.show({ plain: 'copying', isNewPhase: true });
    progress.show({ plain: undefined });
    progress.end('done');
    progress.end('done');
    assert.equal(stream.text, '0%\n5%\ncopying\ndone\n');
  });
}

test('replaces control characters, and colours warnings', () => {
  const { stream, status } = scene({ env: { FORCE_COLOR: '1' } });
  status.report('Warning: a\u001b[2Jb');
  const progress = status.begin();
  progress.show({ plain: 'disk \u001b[2J' });
  progress.end('disk \u009b done');
  assert.equal(
    stream.text,
    `\u001b[33mWarning:\u001b[39m a?[2Jb\n${HIDE}${CLEAR}disk ?[2J${CLEAR}disk ? done\n${SHOW}`,
  );
});

async function* chunks(time: { ms: number }, count: number) {
  for (let i = 0; i < count; i++) {
    time.ms += 3000;
    yield Buffer.alloc(1024);
  }
}

test('tracks a transfer in plain lines', async () => {
  const { time, stream, status } = scene({ isTTY: false });
  let bytes = 0;
  for await (const chunk of trackTransfer(status, { what: 'disk a', size: 4096 }, chunks(time, 4))) {
    bytes += chunk.length;
  }
  assert.equal(bytes, 4096);
  assert.equal(
    stream.text,
    [
      'disk a: 4.0 KiB',
      'disk a: 2.0 KiB of 4.0 KiB (50%), 341 B/s, 6s left',
      'disk a: done, 4.0 KiB at 341 B/s',
      '',
    ].join('\n'),
  );
});

test('tracks a resumed transfer on a terminal', async () => {
  const { time, stream, status } = scene();
  stream.columns = 80;
  const transfer = { what: 'disk a', size: 4096, from: 2048 };
  for await (const _ of trackTransfer(status, transfer, chunks(time, 2)));
  assert.deepEqual(stream.text.replaceAll(HIDE, '').replaceAll(SHOW, '').split(CLEAR), [
    '',
    'disk a: resuming at 2.0 KiB of 4.0 KiB',
    'disk a [=====================>      ]  75% 3.0 KiB of 4.0 KiB, 341 B/s, 3s left',
    'disk a [=====================================] 100% 4.0 KiB of 4.0 KiB, 341 B/s',
    'disk a: done, 2.0 KiB at 341 B/s\n',
  ]);
});

test('a transfer that fails leaves its last state', async () => {
  const { stream, status } = scene();
  async function* failing() {
    yield Buffer.alloc(1);
    throw new Error('broken');
  }
  await assert.rejects(async () => {
    for await (const _ of trackTransfer(status, { what: 'a', size: 2 }, failing()));
  }, /broken/);
  assert.ok(stream.text.endsWith(`\n${SHOW}`));
});
