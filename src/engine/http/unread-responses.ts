/** Ends responses that nobody reads: a client that accepts no data could hold the memory of its responses for ever. */

/** The time in which a client must accept a piece of its response (http/write-pieces.ts). */
const UNREAD_MS = 30_000;
const SWEEP_MS = 5000;

interface Response {
  /** Returns a number that changes when the client accepts data. */
  progress(): number;
  cut(): void;
  seen: number;
  sinceMs: number;
}

export class UnreadResponses {
  readonly #elapsed: () => number;
  readonly #all = new Set<Response>();
  #sweeping: NodeJS.Timeout | undefined;

  constructor(elapsed: () => number) {
    this.#elapsed = elapsed;
  }

  get size(): number {
    return this.#all.size;
  }

  /** Watches a response. Returns a function to call at its end. */
  add(progress: () => number, cut: () => void): () => void {
    const response = { progress, cut, seen: progress(), sinceMs: this.#elapsed() };
    this.#all.add(response);
    if (this.#sweeping === undefined) {
      this.#sweeping = setInterval(() => this.sweep(), SWEEP_MS);
      this.#sweeping.unref();
    }
    return () => void this.#all.delete(response);
  }

  /** Cuts the responses that are due. */
  sweep(): void {
    const now = this.#elapsed();
    for (const response of this.#all) {
      const seen = response.progress();
      if (seen !== response.seen) Object.assign(response, { seen, sinceMs: now });
      else if (now - response.sinceMs >= UNREAD_MS) {
        this.#all.delete(response);
        response.cut();
      }
    }
  }

  stop(): void {
    clearInterval(this.#sweeping);
    this.#sweeping = undefined;
  }
}
