/** Durations in the format of Go, which Kubernetes accepts: `5m`, `1h30m`, `1.5s`, `0`. Pure. */

const UNITS_MS: ReadonlyMap<string, number> = new Map([
  ['ns', 1e-6],
  ['us', 1e-3],
  ['µs', 1e-3],
  // The Greek letter looks the same and is accepted as well.
  ['μs', 1e-3],
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
]);

/** A number and its unit. Numbers with more digits are out of range. */
const PART = /([0-9]{0,32}(?:\.[0-9]{0,32})?)(ns|us|µs|μs|ms|s|m|h)/y;
/** The range of 64-bit nanoseconds. */
const MAX_MS = 2 ** 63 / 1e6;

/** Returns the milliseconds, which may be a fraction, or undefined if the text is not a duration. */
export function parseGoDuration(text: string): number | undefined {
  const sign = text.startsWith('-') ? -1 : 1;
  const start = text.startsWith('-') || text.startsWith('+') ? 1 : 0;
  if (text.slice(start) === '0') return 0;
  let ms = 0;
  let at = start;
  PART.lastIndex = start;
  for (let part = PART.exec(text); part !== null; part = PART.exec(text)) {
    const [, number = '', unit = ''] = part;
    if (number === '' || number === '.') return undefined;
    ms += Number(number) * (UNITS_MS.get(unit) ?? 0);
    at = PART.lastIndex;
  }
  if (at === start || at !== text.length || !(ms < MAX_MS)) return undefined;
  return ms === 0 ? 0 : sign * ms;
}
