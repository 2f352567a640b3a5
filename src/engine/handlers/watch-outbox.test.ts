import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WatchOutbox } from '#engine/handlers/watch-outbox.ts';
import { MAX_WATCH_BUFFER_BYTES, WATCH_PIECE_BYTES } from '#engine/limits.ts';
import type { StreamSink } from '#engine/request.ts';

/** Takes what is written only when the test says so. */
class SlowSink implements StreamSink {
  readonly pieces: Buffer[] = [];
  bufferedBytes = 0;
  #drained: (() => void)[] = [];

  write(chunk: Buffer): void {
    this.pieces.push(chunk);
    this.bufferedBytes += chunk.length;
  }

  onDrain(fn: () => void): void {
    this.#drained.push(fn);
  }

  end(): void {
    assert.fail('ending the sink is the watch’s');
  }

  get waitedFor(): number {
    return this.#drained.length;
  }

  drain(): void {
    this.bufferedBytes = 0;
    for (const fn of this.#drained.splice(0)) fn();
  }

  /** The numbers at the beginnings of the frames that came so far. */
  frames(frameBytes: number): number[] {
    const all = Buffer.concat(this.pieces);
    return Array.from({ length: all.length / frameBytes }, (_, i) => all.readUInt32BE(i * frameBytes));
  }
}

const FRAME = 64 * 1024;

interface Bench {
  readonly sink: SlowSink;
  readonly outbox: WatchOutbox;
  /** What the outbox has told, in order. */
  readonly told: string[];
  /** Numbers of the frames that were made. */
  readonly made: number[];
  add(number: number, weight?: number): void;
}

function bench(): Bench {
  const sink = new SlowSink();
  const told: string[] = [];
  const made: number[] = [];
  const outbox = new WatchOutbox(sink, {
    done: () => void told.push('done'),
    failed: (error) => void told.push(`failed: ${(error as Error).message}`),
  });
  const add = (number: number, weight = 0) =>
    outbox.add(() => {
      made.push(number);
      const frame = Buffer.alloc(FRAME);
      frame.writeUInt32BE(number);
      return frame;
    }, weight);
  return { sink, outbox, told, made, add };
}

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);

describe('WatchOutbox', () => {
  it('sends 25 MB of initial events whole and in order, in pieces that a slow sink takes one by one', () => {
    const { sink, outbox, told, made, add } = bench();
    const count = (25 * 1024 * 1024) / FRAME;
    for (const number of upTo(count)) add(number);
    assert.deepEqual(made, [], 'nothing is made before it is sent');
    outbox.flush();
    let drains = 0;
    for (; sink.waitedFor > 0; drains++) {
      assert.ok(sink.bufferedBytes < WATCH_PIECE_BYTES + FRAME);
      assert.equal(sink.waitedFor, 1);
      sink.drain();
    }
    assert.deepEqual(sink.frames(FRAME), upTo(count));
    assert.deepEqual(told, [], 'the bound is for live events, and the watch goes on');
    assert.ok(drains >= 24, `${drains} pieces`);
  });

  it('puts live events behind the initial ones that still wait', () => {
    const { sink, outbox, add } = bench();
    for (const number of upTo(40)) add(number);
    outbox.flush();
    add(40, FRAME);
    outbox.flush();
    assert.equal(outbox.ready, false);
    while (sink.waitedFor > 0) sink.drain();
    assert.deepEqual(sink.frames(FRAME), upTo(41));
    sink.drain();
    assert.equal(outbox.ready, true);
  });

  it('is done with a watcher that leaves too many live events unread', () => {
    const { sink, outbox, told, add } = bench();
    sink.bufferedBytes = WATCH_PIECE_BYTES;
    const fit = MAX_WATCH_BUFFER_BYTES / FRAME;
    for (const number of upTo(fit)) add(number, FRAME);
    outbox.flush();
    assert.deepEqual(told, []);
    add(fit, FRAME);
    assert.deepEqual(told, ['done']);
  });

  it('counts what waits, not what was sent', () => {
    const { sink, outbox, told, add } = bench();
    const count = (3 * MAX_WATCH_BUFFER_BYTES) / FRAME;
    for (const number of upTo(count)) {
      add(number, FRAME);
      outbox.flush();
      if (sink.waitedFor > 0) sink.drain();
    }
    assert.deepEqual(told, []);
    while (sink.waitedFor > 0) sink.drain();
    assert.deepEqual(sink.frames(FRAME), upTo(count));
  });

  it('ends after the last frame was sent, not before', () => {
    const { sink, outbox, told, add } = bench();
    for (const number of upTo(20)) add(number);
    outbox.end();
    assert.deepEqual(told, []);
    sink.drain();
    assert.deepEqual([told, sink.frames(FRAME).length], [['done'], 20]);
  });

  it('ends at once where nothing waits', () => {
    const { outbox, told } = bench();
    outbox.end();
    assert.deepEqual(told, ['done']);
  });

  it('sends nothing more once it was cleared', () => {
    const { sink, outbox, told, add } = bench();
    for (const number of upTo(40)) add(number);
    outbox.flush();
    const sent = sink.pieces.length;
    outbox.clear();
    sink.drain();
    assert.deepEqual([sink.pieces.length, told], [sent, []]);
  });

  it('tells of a frame that could not be made', () => {
    const { outbox, told } = bench();
    outbox.add(() => {
      throw new Error('no such column');
    }, 0);
    outbox.flush();
    assert.deepEqual(told, ['failed: no such column']);
  });
});
