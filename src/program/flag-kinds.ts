/** Kinds of flags that several commands of selfsame have: paths, ports, addresses, names and times. Pure. */
import { DEFAULT_SERVICE_SUBNETS, parseServiceNetworks } from '#engine/admission/service-addresses/service-networks.ts';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { parseGuestSubnets } from '#api/network/guest-subnets.ts';
import { formatIpNetwork } from '#lib/ip-address.ts';
import { parseGoDuration } from '#kube/go/go-duration.ts';
import { nameErrors } from '#kube/names.ts';
import {
  checkedFlag,
  choiceFlag,
  FlagValueError,
  type Flag,
  type FlagHeader,
  type FlagTable,
} from '#lib/command-line/flag.ts';
import type { EnvironmentVariables } from '#lib/command-line/parse-args.ts';
import type { LogLevel } from '#lib/log.ts';

const PROJECT_ROOT = join(import.meta.dirname, '../..');
const LOG_LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent'];
const MAX_PORT = 65_535;
const NODE_NAME = /^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/;
const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const MIN_LIFETIME_MS = 5000;
const MIN_DURATION_MS = 1000;
const MAX_DURATION_MS = 8760 * 3_600_000;
const VARIABLE_PREFIX = 'SELFSAME_';

/** Lets the variable SELFSAME_NAME set each flag `--name` that is not given. */
export function withFlagVariables<Table extends FlagTable>(table: Table): Table {
  const variable = (name: string) => `${VARIABLE_PREFIX}${name.toUpperCase().replaceAll('-', '_')}`;
  const entries = Object.entries(table).map(([key, flag]) => [key, { ...flag, variable: variable(flag.name) }]);
  return Object.fromEntries(entries) as Table;
}

/** Returns the environment without flag variables, for child processes that get all flags as arguments. */
export function withoutFlagVariables(env: EnvironmentVariables): EnvironmentVariables {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith(VARIABLE_PREFIX)));
}

type Header = FlagHeader & { readonly value: string };

const readPath = (text: string) => (text === '' ? undefined : text);

/** Creates a flag for a file or directory. `place` is relative to the folder of the program. */
export function pathInProgram(header: Header, place: string): Flag<string> {
  const fallback = join(PROJECT_ROOT, place);
  return pathFlag({ defaultText: `${place} in the folder of the program`, ...header }, fallback);
}

export function pathFlag<F extends string | undefined>(header: Header, fallback: F): Flag<string | F> {
  return checkedFlag<string, F>({ completes: 'file', ...header, fallback, mustBe: 'a path', read: readPath });
}

export function portFlag(header: FlagHeader, fallback: number): Flag<number> {
  return checkedFlag({
    ...header,
    value: 'PORT',
    fallback,
    mustBe: `a port number from 0 to ${MAX_PORT}`,
    read: (text) => readNumber(text, 0, MAX_PORT),
  });
}

/** Creates a flag for a number in a range. */
export function rangeFlag(header: Header & { readonly fallback: number }, least: number, most: number): Flag<number> {
  return checkedFlag({
    ...header,
    mustBe: `a number from ${least} to ${most}`,
    read: (text) => readNumber(text, least, most),
  });
}

function readNumber(text: string, least: number, most: number): number | undefined {
  const value = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
  return value >= least && value <= most ? value : undefined;
}

/** Creates a flag for an IP address, or localhost if it is allowed. */
export function addressFlag<F extends string | undefined>(
  header: FlagHeader,
  fallback: F,
  { allowsLocalhost = false } = {},
): Flag<string | F> {
  return checkedFlag<string, F>({
    ...header,
    value: 'ADDRESS',
    fallback,
    mustBe: allowsLocalhost ? 'an IP address or localhost' : 'an IP address',
    read: (text) => (isIP(text) !== 0 || (allowsLocalhost && text === 'localhost') ? text : undefined),
  });
}

/** Creates a flag for the subnets of Services. */
export function serviceSubnetsFlag(header: FlagHeader): Flag<readonly string[]> {
  return checkedFlag({
    defaultText: DEFAULT_SERVICE_SUBNETS.join(','),
    ...header,
    value: 'SUBNETS',
    fallback: DEFAULT_SERVICE_SUBNETS,
    mustBe: `one IPv4 subnet, one IPv6 subnet, or both, such as ${DEFAULT_SERVICE_SUBNETS.join(',')}`,
    read(text) {
      const subnets = text.split(',');
      try {
        parseServiceNetworks(subnets);
        return subnets;
      } catch {
        return undefined;
      }
    },
  });
}

export function dnsNameFlag(header: FlagHeader): Flag<string | undefined> {
  return checkedFlag<string, undefined>({
    ...header,
    value: 'NAME',
    fallback: undefined,
    mustBe: 'a DNS name in lower case',
    read: (text) => (nameErrors('subdomain', text).length === 0 ? text : undefined),
  });
}

/** Creates a flag for a lifetime in milliseconds. */
export function lifetimeFlag(header: FlagHeader, days: number): Flag<number> {
  return checkedFlag({
    defaultText: `${days}d`,
    ...header,
    value: 'TIME',
    fallback: days * UNITS['d']!,
    mustBe: 'a time of at least 5s, such as 12h or 90d',
    read(text) {
      const [, count = '', unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
      const ms = Number(count) * (UNITS[unit] ?? Number.NaN);
      return ms >= MIN_LIFETIME_MS ? ms : undefined;
    },
  });
}

/** Creates a flag for a duration in the format of Go, in milliseconds. `fallback` has that format as well. */
export function durationFlag(header: FlagHeader, fallback: string): Flag<number> {
  const read = (text: string) => {
    const ms = parseGoDuration(text) ?? Number.NaN;
    return ms >= MIN_DURATION_MS && ms <= MAX_DURATION_MS ? ms : undefined;
  };
  return checkedFlag({
    defaultText: fallback,
    ...header,
    value: 'DURATION',
    fallback: read(fallback)!,
    mustBe: 'a duration from 1s to 8760h, such as 30m or 1h30m',
    read,
  });
}

/** Creates a flag for the subnets of a GuestNetwork, separated by commas, or one of the words. The first is the default. */
export function guestSubnetsFlag<const W extends string>(
  header: FlagHeader,
  words: readonly [W, ...W[]],
): Flag<W | readonly string[]> {
  const parse = (text: string): W | readonly string[] => {
    const word = words.find((each) => each === text);
    if (word !== undefined) return word;
    const subnets = parseGuestSubnets(text.split(',').map((part) => part.trim()));
    if (typeof subnets === 'string') throw new FlagValueError(`must be ${words.join(', ')} or subnets: ${subnets}`);
    return subnets.map(formatIpNetwork);
  };
  return { defaultText: words[0], ...header, value: 'SUBNETS', fallback: words[0], parse };
}

export function nodeNameFlag<F extends string | undefined>(header: FlagHeader, fallback: F): Flag<string | F> {
  return checkedFlag<string, F>({
    ...header,
    value: 'NAME',
    fallback,
    mustBe: 'a lower-case name of at most 63 characters',
    read: (text) => (NODE_NAME.test(text) ? text : undefined),
  });
}

export const logLevelFlag = (fallback: LogLevel) =>
  choiceFlag({ name: 'log-level', value: 'LEVEL', help: LOG_LEVELS.join(', ') }, LOG_LEVELS, fallback);
