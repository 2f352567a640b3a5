/**
 * Reads values of the host API. Callers send numbers and booleans as strings, too, and no type can be relied on. Pure.
 */
import { isRecord } from '#kube/meta.ts';

export type SentMap = Readonly<Record<string, unknown>>;

const MAX_TEXT = 4096;
const MAX_DEPTH = 16;

/** Returns the value as a string, or undefined if it is not a scalar, is too long or has control characters. */
export function readText(value: unknown): string | undefined {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  // oxlint-disable-next-line no-control-regex
  return typeof value === 'string' && value.length <= MAX_TEXT && !/[\u0000-\u001f\u007f]/.test(value)
    ? value
    : undefined;
}

/** Like readText, but undefined for an empty string. */
export function readWord(value: unknown): string | undefined {
  return readText(value) || undefined;
}

/** Returns the number for `12` and `'12'`, or undefined if the value is not a whole number of 0 or more. */
export function readWholeNumber(value: unknown): number | undefined {
  const text = readText(value);
  if (text === undefined || !/^[0-9]{1,15}$/.test(text)) return undefined;
  return Number(text);
}

/** Like readWholeNumber, but also accepts negative numbers: `-12` and `'-12'`. */
export function readInteger(value: unknown): number | undefined {
  const text = readText(value);
  return text !== undefined && /^-?[0-9]{1,15}$/.test(text) ? Number(text) : undefined;
}

/** Reports whether the value is `true`, `'true'` or `'True'`; everything else is off, as on oVirt's hosts. */
export function isEnabled(value: unknown): boolean {
  return value === true || (typeof value === 'string' && value.toLowerCase() === 'true');
}

/** Returns the value as JSON for messages, cut to 200 characters. */
export function quoteSentValue(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

/** Reports whether the value is nested too deeply for code that recurses into it. */
export function isTooDeep(value: unknown, depth = 0): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (depth >= MAX_DEPTH) return true;
  return Object.values(value).some((child) => isTooDeep(child, depth + 1));
}

export function readMap(value: unknown): SentMap {
  return isRecord(value) ? value : {};
}
