/**
 * The events that a watcher is yet to receive, in order. The initial list and the history wait here until the watcher
 * reads them: they are references to data that is in memory anyway. Live events are bounded, because they keep versions
 * that are otherwise dropped.
 *
 *   add ──► [ batches to encode ] ──flush──► written in pieces, as the sink drains ──► done, if `end` was called
 *
 * Frames are selected and encoded when they are sent, at the pace of the watcher's user: a list may be long, and the
 * objects large.
 */
import { MAX_WATCH_BUFFER_BYTES, WATCH_PIECE_BYTES } from '#engine/request/limits.ts';
import type { StreamSink } from '#engine/request/request.ts';

/** Items that become frames when they are sent. */
interface Batch<T> {
  readonly items: readonly T[];
  /** Returns undefined if the item does not concern the watcher. */
  frame(item: T): Buffer | undefined;
  /** Estimates the time of `frame`, in units of lib/fair-turns.ts. */
  units?(item: T): number;
  /** Counts against the limit on unread bytes; absent = 0. */
  weight?(item: T): number;
}

interface OutboxPace {
  /** Returns a promise for another turn if enough was done in this one. */
  spend(units: number): Promise<void> | undefined;
}

interface OutboxEvents {
  /** Called when everything was sent after `end`, or when the watcher left too much unread. */
  onDone(): void;
  /** Called when a frame cannot be encoded. */
  onFailure(error: unknown): void;
}

export class WatchOutbox {
  readonly #sink: StreamSink;
  readonly #pace: OutboxPace;
  readonly #events: OutboxEvents;
  #batches: Batch<unknown>[] = [];
  /** Index of the next item of the first batch. */
  #next = 0;
  /** True if the time of the next item has been spent. */
  #isPaid = false;
  #weight = 0;
  #isWaiting = false;
  #ending = false;

  constructor(sink: StreamSink, pace: OutboxPace, events: OutboxEvents) {
    this.#sink = sink;
    this.#pace = pace;
    this.#events = events;
  }

  /** True if nothing is pending and the sink has space, so that a direct write keeps the order. */
  get ready(): boolean {
    return this.#batches.length === 0 && this.#sink.bufferedBytes < WATCH_PIECE_BYTES;
  }

  /** Adds one frame. Nothing is sent before `flush`. */
  add(frame: () => Buffer): void {
    this.addAll({ items: [frame], frame: (make) => make() });
  }

  /** Adds a batch. Nothing is sent before `flush`. */
  addAll<T>(batch: Batch<T>): void {
    if (batch.items.length === 0) return;
    this.#batches.push(batch);
    if (batch.weight === undefined) return;
    for (const item of batch.items) this.#weight += batch.weight(item);
    if (this.#weight > MAX_WATCH_BUFFER_BYTES) this.#events.onDone();
  }

  flush(): void {
    if (this.#isWaiting) return;
    try {
      this.#send();
    } catch (error) {
      this.#events.onFailure(error);
    }
  }

  /** Ends the watch once everything was sent. */
  end(): void {
    this.#ending = true;
    this.flush();
  }

  clear(): void {
    this.#batches = [];
    this.#next = 0;
    this.#isPaid = false;
    this.#weight = 0;
  }

  #send(): void {
    const frames: Buffer[] = [];
    let room = WATCH_PIECE_BYTES - this.#sink.bufferedBytes;
    let turn: Promise<void> | undefined;
    while (this.#batches.length > 0 && room > 0) {
      turn = this.#payNext();
      if (turn !== undefined) break;
      const bytes = this.#takeFrame();
      if (bytes === undefined) continue;
      frames.push(bytes);
      room -= bytes.length;
    }
    if (frames.length > 0) this.#sink.write(frames.length === 1 ? frames[0]! : Buffer.concat(frames));
    if (this.#batches.length > 0) {
      this.#isWaiting = true;
      if (turn === undefined) this.#sink.onDrain(() => this.#continue());
      else void turn.then(() => this.#continue());
      return;
    }
    this.clear();
    if (this.#ending) this.#events.onDone();
  }

  #continue(): void {
    this.#isWaiting = false;
    this.flush();
  }

  #payNext(): Promise<void> | undefined {
    const { items, units } = this.#batches[0]!;
    if (this.#isPaid || units === undefined) return undefined;
    this.#isPaid = true;
    return this.#pace.spend(units(items[this.#next]));
  }

  #takeFrame(): Buffer | undefined {
    const batch = this.#batches[0]!;
    const item = batch.items[this.#next++];
    this.#isPaid = false;
    if (this.#next === batch.items.length) {
      this.#batches.shift();
      this.#next = 0;
    }
    if (batch.weight !== undefined) this.#weight -= batch.weight(item);
    return batch.frame(item);
  }
}
