/**
 * Limits how often and how much is read from a guest, which can write without end. Reading pauses when the budget is used
 * up; the sockets in between then fill, and QEMU makes the guest wait. Each pause lets a chunk grow, so the work for a
 * flood is bounded by the number of chunks. A usual console never uses up its budget. Pure, apart from its own counts.
 */

interface FlowLimits {
  readonly chunksPerSecond: number;
  readonly bytesPerSecond: number;
  /** The budget of this many seconds can be used at once. */
  readonly burstSeconds: number;
}

/**
 * A guest that writes single bytes fills the buffer of a socket with about 300 of them, so that it can write 30 KiB per
 * second after a burst: three times as much as a fast serial line.
 */
export const CONSOLE_LIMITS: FlowLimits = { chunksPerSecond: 100, bytesPerSecond: 512 * 1024, burstSeconds: 4 };

export class FlowBudget {
  readonly #limits: FlowLimits;
  #chunks: number;
  #bytes: number;
  #lastMs: number;

  constructor(limits: FlowLimits, nowMs: number) {
    this.#limits = limits;
    this.#chunks = limits.chunksPerSecond * limits.burstSeconds;
    this.#bytes = limits.bytesPerSecond * limits.burstSeconds;
    this.#lastMs = nowMs;
  }

  /** Takes one chunk from the budget. Returns how long to wait before the next one is read; 0 usually. */
  take(bytes: number, nowMs: number): number {
    const { chunksPerSecond, bytesPerSecond, burstSeconds } = this.#limits;
    const seconds = Math.max(0, nowMs - this.#lastMs) / 1000;
    this.#lastMs = nowMs;
    this.#chunks = Math.min(this.#chunks + seconds * chunksPerSecond, chunksPerSecond * burstSeconds) - 1;
    this.#bytes = Math.min(this.#bytes + seconds * bytesPerSecond, bytesPerSecond * burstSeconds) - bytes;
    const missing = Math.max(-this.#chunks / chunksPerSecond, -this.#bytes / bytesPerSecond);
    return missing <= 0 ? 0 : Math.ceil(missing * 1000);
  }
}
