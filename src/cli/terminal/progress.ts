/** Reports the progress of a transfer: a line at the start, one every few seconds, and one at the end. */
import type { Clock } from '#lib/clock.ts';

const REPORT_INTERVAL_MS = 5000;
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

export interface ProgressOptions {
  /** The bytes already transferred. */
  readonly from?: number;
  readonly clock: Clock;
  readonly report: (line: string) => void;
}

/** Passes the chunks through and reports progress. */
export async function* reportProgress(
  what: string,
  size: number,
  chunks: AsyncIterable<Uint8Array>,
  { clock, report, from = 0 }: ProgressOptions,
): AsyncGenerator<Uint8Array> {
  const beganAt = clock.elapsed();
  let [bytes, saidAt] = [from, beganAt];
  report(from === 0 ? `${what}: ${bytesText(size)}` : `${what}: resuming at ${bytesText(from)} of ${bytesText(size)}`);
  for await (const chunk of chunks) {
    bytes += chunk.length;
    const now = clock.elapsed();
    if (now - saidAt >= REPORT_INTERVAL_MS && bytes < size) {
      saidAt = now;
      const percent = Math.floor((bytes / size) * 100);
      report(
        `${what}: ${bytesText(bytes)} of ${bytesText(size)} (${percent}%), ${rateText(bytes - from, now - beganAt)}`,
      );
    }
    yield chunk;
  }
  report(`${what}: done, ${rateText(bytes - from, clock.elapsed() - beganAt)}`);
}

export function bytesText(bytes: number): string {
  let [value, unit] = [bytes, 0];
  for (; value >= 1024 && unit < UNITS.length - 1; unit++) value /= 1024;
  return unit === 0 ? `${bytes} B` : `${value.toFixed(1)} ${UNITS[unit]}`;
}

function rateText(bytes: number, ms: number): string {
  return `${bytesText(Math.round((bytes * 1000) / Math.max(ms, 1)))}/s`;
}
