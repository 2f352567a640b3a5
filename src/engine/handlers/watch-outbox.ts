/**
 * What a watcher is still to be sent, in order. The list and the history that it starts with wait here for as long as
 * it takes to read them: they are references to what memory holds anyway. Live events are bounded, because they keep
 * versions that everybody else may have forgotten.
 *
 *   add ──► [ frames to be made ] ──flush──► written in pieces, as the sink drains ──► done, if it was to end
 */
import { MAX_WATCH_BUFFER_BYTES, WATCH_PIECE_BYTES } from '#engine/limits.ts';
import type { StreamSink } from '#engine/request.ts';

interface Item {
  readonly frame: () => Buffer;
  readonly weight: number;
}

export interface OutboxEvents {
  /** Everything was sent after `end`, or the watcher has left too much unread. */
  done(): void;
  /** A frame could not be made. */
  failed(error: unknown): void;
}

export class WatchOutbox {
  readonly #sink: StreamSink;
  readonly #events: OutboxEvents;
  #items: Item[] = [];
  /** Items before it were sent. */
  #next = 0;
  #weight = 0;
  #draining = false;
  #ending = false;

  constructor(sink: StreamSink, events: OutboxEvents) {
    this.#sink = sink;
    this.#events = events;
  }

  /** Nothing waits, and the sink has room: what is written to it now keeps the order. */
  get ready(): boolean {
    return this.#items.length === 0 && this.#sink.bufferedBytes < WATCH_PIECE_BYTES;
  }

  /** `weight` counts against the bound on unread bytes. Nothing is sent before `flush`. */
  add(frame: () => Buffer, weight: number): void {
    this.#items.push({ frame, weight });
    this.#weight += weight;
    if (this.#weight > MAX_WATCH_BUFFER_BYTES) this.#events.done();
  }

  flush(): void {
    if (this.#draining) return;
    try {
      this.#send();
    } catch (error) {
      this.#events.failed(error);
    }
  }

  /** Ends once everything was sent. */
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
    if (this.#ending) this.#events.done();
  }
}
