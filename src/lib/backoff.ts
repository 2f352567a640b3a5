/** Exponential delays with a ceiling; pure, the caller keeps the count. */

export interface BackoffOptions {
  readonly firstMs: number;
  readonly maxMs: number;
  readonly factor?: number;
}

/** Delay before attempt number `failures` (1 for the first retry). */
export function backoffMs(failures: number, { firstMs, maxMs, factor = 2 }: BackoffOptions): number {
  if (failures <= 0) return 0;
  return Math.min(maxMs, firstMs * factor ** Math.min(failures - 1, 60));
}

/** Spreads a delay over [delay/2, delay), so that many clients do not come back at one moment. */
export function jittered(delayMs: number, random: () => number = Math.random): number {
  return delayMs / 2 + (delayMs / 2) * random();
}
