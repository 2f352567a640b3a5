/** Exponential delays with a maximum. Pure: the caller counts the failures. */

export interface BackoffOptions {
  readonly firstMs: number;
  readonly maxMs: number;
  readonly factor?: number;
}

/** Returns the delay before the next attempt after this many failures. */
export function backoffMs(failures: number, { firstMs, maxMs, factor = 2 }: BackoffOptions): number {
  if (failures <= 0) return 0;
  return Math.min(maxMs, firstMs * factor ** Math.min(failures - 1, 60));
}

/** Returns a random delay in [delayMs/2, delayMs), so that many clients do not retry at the same time. */
export function addJitter(delayMs: number, random: () => number = Math.random): number {
  return delayMs / 2 + (delayMs / 2) * random();
}
