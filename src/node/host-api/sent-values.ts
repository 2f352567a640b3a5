/** Values as callers of the host API send them: numbers and switches may be texts, and nothing is what it should be. Pure. */
import { isRecord } from '#kube/meta.ts';

export type SentMap = Readonly<Record<string, unknown>>;

const MAX_TEXT = 4096;
const MAX_DEPTH = 16;

/** Undefined where nothing was sent, or nothing that reads as one short text. */
export function textOf(value: unknown): string | undefined {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  // oxlint-disable-next-line no-control-regex
  return typeof value === 'string' && value.length <= MAX_TEXT && !/[\u0000-\u001f\u007f]/.test(value)
    ? value
    : undefined;
}

/** An empty text is none. */
export function wordOf(value: unknown): string | undefined {
  return textOf(value) || undefined;
}

/** `12` and `'12'`; undefined for what is no whole number from 0 on. */
export function wholeOf(value: unknown): number | undefined {
  const text = textOf(value);
  if (text === undefined || !/^[0-9]{1,15}$/.test(text)) return undefined;
  return Number(text);
}

/** Returns whole numbers below 0, too: `-12` and `'-12'`. */
export function integerOf(value: unknown): number | undefined {
  const text = textOf(value);
  return text !== undefined && /^-?[0-9]{1,15}$/.test(text) ? Number(text) : undefined;
}

/** `true`, `'true'` and `'True'`; everything else is off, as it was with the originals. */
export function isOn(value: unknown): boolean {
  return value === true || (typeof value === 'string' && value.toLowerCase() === 'true');
}

/** What it was given as, for messages. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

/** Deeper than anybody needs, and deep enough to harm whoever walks through it. */
export function isTooDeep(value: unknown, depth = 0): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (depth >= MAX_DEPTH) return true;
  return Object.values(value).some((child) => isTooDeep(child, depth + 1));
}

export function mapOf(value: unknown): SentMap {
  return isRecord(value) ? value : {};
}
