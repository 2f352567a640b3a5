/**
 * Bearer tokens: what every sort of them answers to, and the static ones: the file of kube-apiserver's
 * --token-auth-file, `token,user,uid,"group1,group2"`. Stricter than the original where it would skip or overwrite
 * silently: a mistake in a file of secrets is an error that names its line (and never the token).
 */
import { createHmac, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { asAuthenticated } from '#engine/auth/groups.ts';
import { API_AUDIENCES } from '#engine/auth/service-accounts/claims.ts';
import type { UserInfo } from '#engine/request.ts';

export interface StaticToken {
  readonly token: string;
  readonly user: UserInfo;
}

/** Whose token it is and for which of the audiences that were asked for, or why it does not hold. */
export type TokenVerdict =
  | { readonly user: UserInfo; readonly audiences: readonly string[] }
  | { readonly refused: string };

export interface TokenLookup {
  /** Whose token it is, where it is shown to this API; undefined for one that nobody has. */
  (token: string): UserInfo | undefined;
  /**
   * The whole answer about a token that may be meant for others; undefined = it is none of this sort. A lookup without
   * it knows tokens for this API only.
   */
  readonly review?: (token: string, audiences: readonly string[]) => TokenVerdict | undefined;
}

/** The first that knows a token answers. */
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

/** What a lookup has to say about a token for these audiences, whatever the lookup's sort. */
export function reviewWith(lookup: TokenLookup, token: string, audiences: readonly string[]): TokenVerdict | undefined {
  if (lookup.review !== undefined) return lookup.review(token, audiences);
  const shared = sharedAudiences(API_AUDIENCES, audiences);
  const user = shared.length === 0 ? undefined : lookup(token);
  return user && { user, audiences: shared };
}

export function sharedAudiences(meant: readonly string[], wanted: readonly string[]): readonly string[] {
  // Nearly every token is for this API and nothing else.
  if (meant.length === 1 && wanted.length === 1) return meant[0] === wanted[0] ? wanted : [];
  return meant.filter((audience) => wanted.includes(audience));
}

export class TokenFileError extends Error {
  override name = 'TokenFileError';

  constructor(problem: string, options?: ErrorOptions) {
    super(`Cannot read the token file: ${problem}`, options);
  }
}

/** Throws TokenFileError, also when the file cannot be read. */
export async function loadTokenFile(path: string): Promise<StaticToken[]> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (cause) {
    throw new TokenFileError((cause as Error).message, { cause });
  }
  return parseTokenFile(text);
}

/** Empty lines are skipped. Throws TokenFileError. */
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
  if (/\s/.test(token)) throw badLine(number, 'has a token with white space, which no header can carry');
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

/** The columns of one line (RFC 4180, no line breaks within quotes), or what is wrong with it. */
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
    if (!rest.startsWith(',')) return 'has text behind a closing quote';
    rest = rest.slice(1);
  }
}

/**
 * Tokens are looked up by their HMAC under a key of this process, never compared as text: how long a wrong guess
 * takes tells nothing about the right one.
 */
export function tokenLookup(tokens: readonly StaticToken[]): TokenLookup {
  const key = randomBytes(32);
  const digest = (token: string) => createHmac('sha256', key).update(token).digest('base64');
  const users = new Map(tokens.map(({ token, user }) => [digest(token), asAuthenticated(user)]));
  return (token) => (users.size === 0 ? undefined : users.get(digest(token)));
}
