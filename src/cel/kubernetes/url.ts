/** Kubernetes' `url()` library: URLs and their parts. */
import type { Budget } from '#cel/limits/budget.ts';
import { bytesCost } from '#cel/limits/budget.ts';
import { ArrayList } from '#cel/evaluate/array-list.ts';
import { EntryMap } from '#cel/evaluate/entry-map.ts';
import { func, method } from '#cel/extensions/overload.ts';
import { quoteCost } from '#cel/extensions/go-quote.ts';
import { THROW_COST } from '#cel/extensions/throw-cost.ts';
import type { ParsedUrl } from '#cel/kubernetes/parse-url.ts';
import { parseUrl, findUrlError } from '#cel/kubernetes/parse-url.ts';
import { UrlError, checkEscapes, unescapeUrl } from '#cel/kubernetes/url-escape.ts';
import type { Library, Overload } from '#cel/library.ts';
import { BOOL, STRING, listOf, mapOf, opaque } from '#cel/type.ts';
import type { CelMap } from '#cel/value.ts';
import { CelFault, CelOpaque } from '#cel/value.ts';

const URL_TYPE = opaque('kubernetes.URL');

/** Units for parsing a URL, in addition to its length. */
const PARSE_COST = 40;
/** The cost of one character, in bytes that are only read: several checks read it, and it may be escaped. */
const CHARACTER_BYTES = 8;
const HOST_COST = 5;
const EQUAL_COST = 10;
/** Units for one pair of a query with escapes. Invalid escapes are found by throwing. */
const UNESCAPE_COST = 100;
const PAIR_COST = 10;
const QUERY_COST = 20;

export class CelUrl extends CelOpaque {
  override readonly type = URL_TYPE;
  readonly parts: ParsedUrl;

  constructor(parts: ParsedUrl) {
    super();
    this.parts = parts;
  }

  override equals(other: CelOpaque, budget: Budget): boolean {
    if (!(other instanceof CelUrl)) return false;
    const [a, b] = [this.parts, other.parts];
    budget.charge(EQUAL_COST);
    return (Object.keys(a) as (keyof ParsedUrl)[]).every((part) => {
      budget.charge(bytesCost(a[part]?.length ?? 0));
      return a[part] === b[part];
    });
  }
}

export const urlLibrary: Library = {
  functions: {
    getEscapedPath: [part('url_get_escaped_path', ({ escapedPath }) => escapedPath)],
    getHost: [part('url_get_host', ({ host }) => host)],
    getHostname: [hostPart('url_get_hostname', ({ name }) => name)],
    getPort: [hostPart('url_get_port', ({ port }) => port)],
    getQuery: [method<[CelUrl]>('url_get_query', [URL_TYPE], mapOf(STRING, listOf(STRING)), getQuery)],
    getScheme: [part('url_get_scheme', ({ scheme }) => scheme)],
    isURL: [
      func<[string]>('is_url_string', [STRING], BOOL, (budget, text) => {
        budget.charge(PARSE_COST + bytesCost(text.length * CHARACTER_BYTES));
        const isUrl = findUrlError(text) === undefined;
        if (!isUrl) budget.charge(THROW_COST + quoteCost(text));
        return isUrl;
      }),
    ],
    url: [
      func<[string]>('string_to_url', [STRING], URL_TYPE, (budget, text) => {
        budget.charge(2 * PARSE_COST + bytesCost(text.length * 2 * CHARACTER_BYTES));
        const parts = parseUrl(text);
        if (typeof parts !== 'string') return new CelUrl(parts);
        budget.charge(THROW_COST + quoteCost(text));
        return new CelFault(`URL parse error during conversion from string: ${parts}`);
      }),
    ],
  },
};

function part(id: string, read: (parts: ParsedUrl) => string): Overload {
  return method<[CelUrl]>(id, [URL_TYPE], STRING, (_budget, url) => read(url.parts));
}

interface Host {
  readonly name: string;
  readonly port: string;
}

function hostPart(id: string, read: (host: Host) => string): Overload {
  return method<[CelUrl]>(id, [URL_TYPE], STRING, (budget, { parts: { host } }) => {
    budget.charge(HOST_COST + bytesCost(host.length));
    return read(splitHost(host));
  });
}

/** Searches once from the end: a pattern with `$` would restart at every colon. */
function splitHost(host: string): Host {
  const colon = host.lastIndexOf(':');
  const hasPort = colon >= 0 && /^[0-9]*$/.test(host.slice(colon + 1));
  const name = hasPort ? host.slice(0, colon) : host;
  const isBracketed = name.startsWith('[') && name.endsWith(']');
  return { name: isBracketed ? name.slice(1, -1) : name, port: hasPort ? host.slice(colon + 1) : '' };
}

/** Skips pairs that cannot be unescaped, as Go does. */
function getQuery(budget: Budget, url: CelUrl): CelMap | CelFault {
  const query = url.parts.query ?? '';
  budget.charge(QUERY_COST + bytesCost(query.length * 2));
  const values = new Map<string, string[]>();
  for (const pair of query.split('&')) {
    budget.charge(pair.includes('%') ? UNESCAPE_COST : PAIR_COST);
    if (pair === '' || pair.includes(';')) continue;
    const equals = pair.indexOf('=');
    const key = tryUnescape(equals < 0 ? pair : pair.slice(0, equals));
    const value = tryUnescape(equals < 0 ? '' : pair.slice(equals + 1));
    if (key === undefined || value === undefined) continue;
    const known = values.get(key);
    if (known === undefined) values.set(key, [value]);
    else known.push(value);
  }
  return EntryMap.of([...values].map(([key, texts]) => [key, new ArrayList(texts)] as const));
}

function tryUnescape(text: string): string | undefined {
  try {
    checkEscapes(text, 'query');
    return unescapeUrl(text, 'query');
  } catch (error) {
    if (error instanceof UrlError) return undefined;
    throw error;
  }
}
