/**
 * The events that a watcher is yet to receive, in order. The initial list and the history wait here until the watcher
 * reads them: they are references to data that is in memory anyway. Live events are bounded, because they keep versions
 * that are otherwise dropped.
 *
 *   add ──► [ frames to encode ] ──flush──► written in pieces, as the sink drains ──► done, if `end` was called
 */
import { MAX_WATCH_BUFFER_BYTES, WATCH_PIECE_BYTES } from '#engine/request/limits.ts';
import type { StreamSink } from '#engine/request/request.ts';

interface Item {
  readonly frame: () => Buffer;
  readonly weight: number;
}

interface OutboxEvents {
  /** Called when everything was sent after `end`, or when the watcher left too much unread. */
  onDone(): void;
  /** Called when a frame cannot be encoded. */
  onFailure(error: unknown): void;
}

export class WatchOutbox {
  readonly #sink: StreamSink;
  readonly #events: OutboxEvents;
  #items: Item[] = [];
  /** Index of the next item to send. */
  #next = 0;
  #weight = 0;
  #draining = false;
  #ending = false;

  constructor(sink: StreamSink, events: OutboxEvents) {
    this.#sink = sink;
    this.#events = events;
  }

  /** True if nothing is pending and the sink has space, so that a direct write keeps the order. */
  get ready(): boolean {
    return this.#items.length === 0 && this.#sink.bufferedBytes < WATCH_PIECE_BYTES;
  }

  /** `weight` counts against the limit on unread bytes. Nothing is sent before `flush`. */
  add(frame: () => Buffer, weight: number): void {
    this.#items.push({ frame, weight });
    this.#weight += weight;
    if (this.#weight > MAX_WATCH_BUFFER_BYTES) this.#events.onDone();
  }

  flush(): void {
    if (this.#draining) return;
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
    this.#items = [];
    this.#next = 0;
    this.#weight = 0;
  }

  #send(): void {
    const frames: Buffer[] = [];
    let room = WATCH_PIECE_BYTES - this.#sink.bufferedBytes;
    while (this.#next < this.#items.length && room > 0) {
      const { frame, weight } = this.#items[this.#next++]!;
      const bytes = frame();
      frames.push(bytes);
      room -= bytes.length;
      this.#weight -= weight;
    }
    if (frames.length > 0) this.#sink.write(frames.length === 1 ? frames[0]! : Buffer.concat(frames));
    if (this.#next < this.#items.length) {
      this.#draining = true;
      this.#sink.onDrain(() => {
        this.#draining = false;
        this.flush();
      });
      return;
    }
    this.clear();
    if (this.#ending) this.#events.onDone();
  }
}
