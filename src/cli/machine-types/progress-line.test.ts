import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { ProgressLine, type MaybeTerminal } from '#cli/machine-types/progress-line.ts';
import { FakeClock } from '#client/testing/fake-clock.ts';

function aStream(more: { isTTY?: boolean; columns?: number } = {}): MaybeTerminal & { text(): string } {
  let text = '';
  const stream = new Writable({
    write(chunk, _, done) {
      text += String(chunk);
      done();
    },
  });
  return Object.assign(stream, more, { text: () => text });
}

test('overwrites the line on a terminal, and cuts it at the width', () => {
  const stream = aStream({ isTTY: true, columns: 6 });
  const line = new ProgressLine(stream, new FakeClock());
  line.show('1 of 9999');
  line.show('1 of 9999');
  line.show('2 of 9999');
  line.end('9999 of 9999');
  assert.equal(stream.text(), '\r\u001b[K1 of \r\u001b[K2 of \r\u001b[K9999 of 9999\n');
});

test('prints lines at intervals, and the last one, if it is not a terminal', async () => {
  const stream = aStream();
  const clock = new FakeClock();
  const line = new ProgressLine(stream, clock);
  line.show('1');
  line.show('2');
  await clock.advance(5000);
  line.show('3');
  line.end('4');
  assert.equal(stream.text(), '1\n3\n4\n');
});

test('does not print the last line twice', () => {
  const stream = aStream();
  const line = new ProgressLine(stream, new FakeClock());
  line.show('all');
  line.end('all');
  assert.equal(stream.text(), 'all\n');
});

test('assumes a default width if the terminal reports none', () => {
  const stream = aStream({ isTTY: true, columns: 0 });
  new ProgressLine(stream, new FakeClock()).show('1 of 9999');
  assert.equal(stream.text(), '\r\u001b[K1 of 9999');
});
