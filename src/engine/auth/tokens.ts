/**
 * Bearer token lookups, and static tokens: the file of kube-apiserver's --token-auth-file,
 * `token,user,uid,"group1,group2"`. Stricter than the original, which would silently skip or overwrite: an error in the
 * file reports its line (and never the token).
 */
import { createHmac, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { asAuthenticated } from '#engine/auth/groups.ts';
import { API_AUDIENCES } from '#engine/auth/service-accounts/claims.ts';
import type { UserInfo } from '#engine/request/request.ts';

export interface StaticToken {
  readonly token: string;
  readonly user: UserInfo;
}

/** The user and the shared audiences of a token, or why it is invalid. */
export type TokenVerdict =
  | { readonly user: UserInfo; readonly audiences: readonly string[] }
  | { readonly refused: string };

export interface TokenLookup {
  /** Returns the user of a token for this API, or undefined for an unknown token. */
  (token: string): UserInfo | undefined;
  /**
   * Reviews a token that may be for other audiences; undefined = it is not a token of this type. A lookup without this
   * method handles tokens for this API only.
   */
  readonly review?: (token: string, audiences: readonly string[]) => TokenVerdict | undefined;
}

/** Combines lookups; the first one that accepts a token answers. */
export function joinTokenLookups(lookups: readonly TokenLookup[]): TokenLookup {
  const lookup = (token: string) => {
    for (const one of lookups) {
      const user = one(token);
      if (user !== undefined) return user;
    }
    return undefined;
  };
  const review = (token: string, audiences: readonly string[]) => {
    let refused: TokenVerdict | undefined;
    for (const one of lookups) {
      const verdict = reviewWith(one, token, audiences);
      if (verdict !== undefined && 'user' in verdict) return verdict;
      refused ??= verdict;
    }
    return refused;
  };
  return Object.assign(lookup, { review });
}

/** Reviews a token for these audiences with any lookup. */
export function reviewWith(lookup: TokenLookup, token: string, audiences: readonly string[]): TokenVerdict | undefined {
  if (lookup.review !== undefined) return lookup.review(token, audiences);
  const shared = sharedAudiences(API_AUDIENCES, audiences);
  const user = shared.length === 0 ? undefined : lookup(token);
  return user && { user, audiences: shared };
}

export function sharedAudiences(tokenAudiences: readonly string[], wanted: readonly string[]): readonly string[] {
  // Almost every token is for this API only.
  if (tokenAudiences.length === 1 && wanted.length === 1) return tokenAudiences[0] === wanted[0] ? wanted : [];
  return tokenAudiences.filter((audience) => wanted.includes(audience));
}

export class TokenFileError extends Error {
  override name = 'TokenFileError';

  constructor(problem: string, options?: ErrorOptions) {
    super(`Cannot read the token file: ${problem}`, options);
  }
}

/** Throws TokenFileError, also if the file cannot be read. */
export async function loadTokenFile(path: string): Promise<StaticToken[]> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (cause) {
    throw new TokenFileError((cause as Error).message, { cause });
  }
  return parseTokenFile(text);
}

/** Skips empty lines. Throws TokenFileError. */
export function parseTokenFile(text: string): StaticToken[] {
  const tokens: StaticToken[] = [];
  const lineOf = new Map<string, number>();
  for (const [index, line] of text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .entries()) {
    if (line.trim() === '') continue;
    const number = index + 1;
    const parsed = parseLine(line, number);
    const earlier = lineOf.get(parsed.token);
    if (earlier !== undefined) throw badLine(number, `repeats the token of line ${earlier}`);
    lineOf.set(parsed.token, number);
    tokens.push(parsed);
  }
  return tokens;
}

function parseLine(line: string, number: number): StaticToken {
  const columns = splitCsv(line);
  if (typeof columns === 'string') throw badLine(number, columns);
  const [token = '', name = '', uid = '', groups = ''] = columns;
  if (columns.length < 3) throw badLine(number, `has ${columns.length} of at least 3 columns`);
  if (columns.length > 4) throw badLine(number, 'has more than 4 columns: several groups need quotes');
  if (token === '') throw badLine(number, 'has an empty token');
  if (/\s/.test(token)) throw badLine(number, 'has a token with white space, which headers cannot contain');
  if (name === '') throw badLine(number, 'has an empty user name');
  const given = groups
    .split(',')
    .map((group) => group.trim())
    .filter((group) => group !== '');
  return { token, user: { name, ...(uid === '' ? {} : { uid }), groups: given } };
}

function badLine(line: number, problem: string): TokenFileError {
  return new TokenFileError(`line ${line} ${problem}; expected token,user,uid[,"group1,group2"]`);
}

/** Splits one line into columns (RFC 4180, without line breaks in quotes), or returns why it is invalid. */
function splitCsv(line: string): string[] | string {
  const columns: string[] = [];
  let rest = line;
  for (;;) {
    const quoted = /^"((?:[^"]|"")*)"/.exec(rest);
    const bare = quoted === null ? (/^[^,]*/.exec(rest)?.[0] ?? '') : '';
    if (bare.includes('"')) return 'has a stray or unclosed quote';
    columns.push(quoted === null ? bare : (quoted[1] ?? '').replaceAll('""', '"'));
    rest = rest.slice(quoted?.[0].length ?? bare.length);
    if (rest === '') return columns;
    if (!rest.startsWith(',')) return 'has text after a closing quote';
    rest = rest.slice(1);
  }
}

/**
 * Looks tokens up by their HMAC under a key of this process and never compares them as text, so that timing reveals
 * nothing.
 */
export function tokenLookup(tokens: readonly StaticToken[]): TokenLookup {
  const key = randomBytes(32);
  const digest = (token: string) => createHmac('sha256', key).update(token).digest('base64');
  const users = new Map(tokens.map(({ token, user }) => [digest(token), asAuthenticated(user)]));
  return (token) => (users.size === 0 ? undefined : users.get(digest(token)));
}
