/** Parses and compares semantic versions like github.com/blang/semver, with its error messages. */
import { quoteForMessage } from '#cel/extensions/go-quote.ts';

export interface Version {
  readonly major: bigint;
  readonly minor: bigint;
  readonly patch: bigint;
  /** Numbers sort before words. */
  readonly prerelease: readonly (bigint | string)[];
}

export class SemverError extends Error {
  override name = 'SemverError';
}

const UINT64_MAX = 2n ** 64n - 1n;
const WORD = /^[0-9A-Za-z-]+$/;

/** Throws SemverError. */
export function parseSemver(text: string): Version {
  if (text === '') throw new SemverError('Version string empty');
  const parts = /^([^.]*)\.([^.]*)\.([^+-]*)(?:-([^+]*))?(?:\+(.*))?$/s.exec(text);
  if (parts === null) throw new SemverError('No Major.Minor.Patch elements found');
  const version = {
    major: parseNumber('Major', parts[1] ?? ''),
    minor: parseNumber('Minor', parts[2] ?? ''),
    patch: parseNumber('Patch', parts[3] ?? ''),
    prerelease: parts[4]?.split('.').map(parsePrerelease) ?? [],
  };
  for (const build of parts[5]?.split('.') ?? []) {
    if (build === '') throw new SemverError('Build meta data is empty');
    if (!WORD.test(build))
      throw new SemverError(`Invalid character(s) found in build meta data ${quoteForMessage(build)}`);
  }
  return version;
}

function parseNumber(name: string, text: string): bigint {
  if (!/^[0-9]*$/.test(text)) {
    throw new SemverError(`Invalid character(s) found in ${name.toLowerCase()} number ${quoteForMessage(text)}`);
  }
  if (/^0./.test(text))
    throw new SemverError(`${name} number must not contain leading zeroes ${quoteForMessage(text)}`);
  return parseUint(text);
}

function parseUint(text: string): bigint {
  const quoted = quoteForMessage(text);
  if (text === '') throw new SemverError(`strconv.ParseUint: parsing ${quoted}: invalid syntax`);
  if (text.length > 20 || BigInt(text) > UINT64_MAX) {
    throw new SemverError(`strconv.ParseUint: parsing ${quoted}: value out of range`);
  }
  return BigInt(text);
}

function parsePrerelease(text: string): bigint | string {
  if (text === '') throw new SemverError('Prerelease is empty');
  if (!WORD.test(text)) throw new SemverError(`Invalid character(s) found in prerelease ${quoteForMessage(text)}`);
  if (!/^[0-9]+$/.test(text)) return text;
  if (/^0./.test(text)) {
    throw new SemverError(`Numeric PreRelease version must not contain leading zeroes ${quoteForMessage(text)}`);
  }
  return parseUint(text);
}

export function compareSemver(a: Version, b: Version): -1 | 0 | 1 {
  const order = compare(a.major, b.major) || compare(a.minor, b.minor) || compare(a.patch, b.patch);
  if (order !== 0) return order;
  if (a.prerelease.length === 0 || b.prerelease.length === 0) return compare(b.prerelease.length, a.prerelease.length);
  for (const [i, left] of a.prerelease.entries()) {
    const right = b.prerelease[i];
    if (right === undefined) return 1;
    const order =
      typeof left === typeof right ? compare(left, right) : typeof left === 'bigint' ? (-1 as const) : (1 as const);
    if (order !== 0) return order;
  }
  return a.prerelease.length < b.prerelease.length ? -1 : 0;
}

function compare<T extends bigint | number | string>(a: T, b: T): -1 | 0 | 1 {
  return a < b ? -1 : a > b ? 1 : 0;
}
