import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WatchOutbox } from '#engine/handlers/watch/watch-outbox.ts';
import { MAX_WATCH_BUFFER_BYTES, WATCH_PIECE_BYTES } from '#engine/request/limits.ts';
import type { StreamSink } from '#engine/request/request.ts';

/** A sink that drains only on demand. */
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
    assert.fail('the watch must end the sink');
  }

  get waitedFor(): number {
    return this.#drained.length;
  }

  drain(): void {
    this.bufferedBytes = 0;
    for (const fn of this.#drained.splice(0)) fn();
  }

  /** Returns the numbers at the beginning of the frames received so far. */
  frames(frameBytes: number): number[] {
    const all = Buffer.concat(this.pieces);
    return Array.from({ length: all.length / frameBytes }, (_, i) => all.readUInt32BE(i * frameBytes));
  }
}

const FRAME = 64 * 1024;

interface Bench {
  readonly sink: SlowSink;
  readonly outbox: WatchOutbox;
  /** The events of the outbox, in order. */
  readonly reported: string[];
  /** Numbers of the encoded frames. */
  readonly made: number[];
  add(number: number, weight?: number): void;
}

const UNPACED = { spend: () => undefined };

function bench(pace: { spend(units: number): Promise<void> | undefined } = UNPACED): Bench {
  const sink = new SlowSink();
  const reported: string[] = [];
  const made: number[] = [];
  const outbox = new WatchOutbox(sink, pace, {
    onDone: () => void reported.push('done'),
    onFailure: (error) => void reported.push(`failed: ${(error as Error).message}`),
  });
  const add = (number: number, weight = 0) =>
    outbox.addAll({
      items: [number],
      frame: () => {
        made.push(number);
        const frame = Buffer.alloc(FRAME);
        frame.writeUInt32BE(number);
        return frame;
      },
      units: () => 1,
      weight: () => weight,
    });
  return { sink, outbox, reported, made, add };
}

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);

describe('WatchOutbox', () => {
  it('sends 25 MB of initial events completely and in order to a slow sink', () => {
    const { sink, outbox, reported, made, add } = bench();
    const count = (25 * 1024 * 1024) / FRAME;
    for (const number of upTo(count)) add(number);
    assert.deepEqual(made, [], 'nothing may be encoded before it is sent');
    outbox.flush();
    let drains = 0;
    for (; sink.waitedFor > 0; drains++) {
      assert.ok(sink.bufferedBytes < WATCH_PIECE_BYTES + FRAME);
      assert.equal(sink.waitedFor, 1);
      sink.drain();
    }
    assert.deepEqual(sink.frames(FRAME), upTo(count));
    assert.deepEqual(reported, [], 'the limit applies to live events only');
    assert.ok(drains >= 24, `${drains} pieces`);
  });

  it('sends live events after pending initial ones', () => {
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

  it('ends a watch that leaves too many live events unread', () => {
    const { sink, outbox, reported, add } = bench();
    sink.bufferedBytes = WATCH_PIECE_BYTES;
    const fit = MAX_WATCH_BUFFER_BYTES / FRAME;
    for (const number of upTo(fit)) add(number, FRAME);
    outbox.flush();
    assert.deepEqual(reported, []);
    add(fit, FRAME);
    assert.deepEqual(reported, ['done']);
  });

  it('counts pending bytes only', () => {
    const { sink, outbox, reported, add } = bench();
    const count = (3 * MAX_WATCH_BUFFER_BYTES) / FRAME;
    for (const number of upTo(count)) {
      add(number, FRAME);
      outbox.flush();
      if (sink.waitedFor > 0) sink.drain();
    }
    assert.deepEqual(reported, []);
    while (sink.waitedFor > 0) sink.drain();
    assert.deepEqual(sink.frames(FRAME), upTo(count));
  });

  it('ends after the last frame was sent, not before', () => {
    const { sink, outbox, reported, add } = bench();
    for (const number of upTo(20)) add(number);
    outbox.end();
    assert.deepEqual(reported, []);
    sink.drain();
    assert.deepEqual([reported, sink.frames(FRAME).length], [['done'], 20]);
  });

  it('ends at once if nothing is pending', () => {
    const { outbox, reported } = bench();
    outbox.end();
    assert.deepEqual(reported, ['done']);
  });

  it('sends nothing after it was cleared', () => {
    const { sink, outbox, reported, add } = bench();
    for (const number of upTo(40)) add(number);
    outbox.flush();
    const sent = sink.pieces.length;
    outbox.clear();
    sink.drain();
    assert.deepEqual([sink.pieces.length, reported], [sent, []]);
  });

  it('waits for another turn when its user has done enough, and spends the time of each item once', async () => {
    const spent: number[] = [];
    const waiting: (() => void)[] = [];
    const { sink, outbox, made, add } = bench({
      spend(units) {
        spent.push(units);
        return spent.length % 2 === 1 ? undefined : new Promise((resolve) => waiting.push(resolve));
      },
    });
    for (const number of upTo(4)) add(number);
    outbox.flush();
    assert.deepEqual([made, sink.frames(FRAME)], [[0], [0]], 'what was encoded is sent');
    outbox.flush();
    assert.deepEqual(made, [0], 'another event does not overtake');
    while (waiting.length > 0) {
      waiting.shift()!();
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.deepEqual([sink.frames(FRAME), spent.length], [upTo(4), 4]);
  });

  it('skips items that do not concern the watcher', () => {
    const { sink, outbox } = bench();
    const frame = (item: number) => (item % 2 === 0 ? Buffer.from([item]) : undefined);
    outbox.addAll({ items: upTo(5), frame });
    outbox.flush();
    assert.deepEqual([...Buffer.concat(sink.pieces)], [0, 2, 4]);
  });

  it('reports a frame that cannot be encoded', () => {
    const { outbox, reported } = bench();
    outbox.add(() => {
      throw new Error('no such column');
    });
    outbox.flush();
    assert.deepEqual(reported, ['failed: no such column']);
  });
});
