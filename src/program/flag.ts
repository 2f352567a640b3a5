/** The type of a flag of the program, and parsers of flag values. Pure. */
import { isIP } from 'node:net';
import type { Completes } from '#cli/parsing/flags.ts';
import { nameErrors } from '#kube/names.ts';
import type { LogLevel } from '#lib/log.ts';

export interface ProgramFlag<T> {
  readonly name: string;
  /** Placeholder of the value in the help. */
  readonly value: string;
  readonly help: string;
  /** The default as shown in the help. */
  readonly fallbackText?: string;
  readonly fallback: T;
  /** The flag must be given. */
  readonly required?: true;
  readonly completes?: Completes;
  /** The flag means true if it has no value. */
  readonly bare?: true;
  /** Parses a value. `mustBe` completes the message "… must be". */
  parse(text: string): Parsed<T>;
}

type Parsed<T> = { ok: T } | { mustBe: string };

export type ProgramFlagTable = Readonly<Record<string, ProgramFlag<unknown>>>;
export type ProgramFlagValues<Table extends ProgramFlagTable> = {
  readonly [Key in keyof Table]: Table[Key] extends ProgramFlag<infer T> ? T : never;
};

export const flag = <T>(options: ProgramFlag<T>): ProgramFlag<T> => options;

const LOG_LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent'];
const MAX_PORT = 65_535;
const NODE_NAME = /^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/;
const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const MIN_LIFETIME_MS = 5000;

export const logLevel = flag<LogLevel>({
  name: 'log-level',
  value: 'LEVEL',
  help: LOG_LEVELS.join(', '),
  fallback: 'warn',
  completes: LOG_LEVELS,
  parse: parseWord(LOG_LEVELS),
});

export const nodeName = flag<string>({
  name: 'name',
  value: 'NAME',
  help: 'the name of the node',
  fallback: 'node-1',
  parse: parseNodeName,
});

export function parseWord<const W extends string>(words: readonly W[]): (text: string) => Parsed<W> {
  return (text) => {
    const word = words.find((known) => known === text);
    return word === undefined ? { mustBe: `one of ${words.join(', ')}` } : { ok: word };
  };
}

export function parsePath(text: string): Parsed<string> {
  return text === '' ? { mustBe: 'a path' } : { ok: text };
}

export function parseAddress(text: string): Parsed<string> {
  return isIP(text) === 0 ? { mustBe: 'an IP address' } : { ok: text };
}

export function parseDnsName(text: string): Parsed<string> {
  return nameErrors('subdomain', text).length === 0 ? { ok: text } : { mustBe: 'a DNS name in lower case' };
}

export function parsePortFlag(text: string): Parsed<number> {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  return port <= MAX_PORT ? { ok: port } : { mustBe: `a port number from 0 to ${MAX_PORT}` };
}

function parseNodeName(text: string): Parsed<string> {
  return NODE_NAME.test(text) ? { ok: text } : { mustBe: 'a lower-case name of at most 63 characters' };
}

/** Parses a duration and returns milliseconds. */
export function parseLifetime(text: string): Parsed<number> {
  const [, count = '', unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const ms = Number(count) * (UNITS[unit] ?? Number.NaN);
  return ms >= MIN_LIFETIME_MS ? { ok: ms } : { mustBe: 'a time of at least 5s, such as 12h or 90d' };
}

export function parseBoolean(text: string): Parsed<boolean> {
  return text === 'true' || text === 'false' ? { ok: text === 'true' } : { mustBe: 'true or false' };
}
