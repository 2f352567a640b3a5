/** Kubernetes' `url()` and its parts. */
import type { Budget } from '#cel/budget.ts';
import { bytesCost } from '#cel/budget.ts';
import { ArrayList } from '#cel/evaluate/array-list.ts';
import { EntryMap } from '#cel/evaluate/entry-map.ts';
import { func, method } from '#cel/extensions/overload.ts';
import { THROW_COST } from '#cel/extensions/throw-cost.ts';
import type { ParsedUrl } from '#cel/kubernetes/parse-url.ts';
import { parseUrl, urlFault } from '#cel/kubernetes/parse-url.ts';
import { UrlError, checkEscapes, unescapeUrl } from '#cel/kubernetes/url-escape.ts';
import type { Library, Overload } from '#cel/library.ts';
import { BOOL, STRING, listOf, mapOf, opaque } from '#cel/type.ts';
import type { CelMap } from '#cel/value.ts';
import { CelFault, CelOpaque } from '#cel/value.ts';

export const URL_TYPE = opaque('kubernetes.URL');

/** Units for reading one, beside its length. */
const PARSE_COST = 10;
/** Units for one pair of a query that has escapes; bad ones are found by throwing. */
const UNESCAPE_COST = 100;

export class CelUrl extends CelOpaque {
  override readonly type = URL_TYPE;
  readonly parts: ParsedUrl;

  constructor(parts: ParsedUrl) {
    super();
    this.parts = parts;
  }

  override equals(other: CelOpaque): boolean {
    if (!(other instanceof CelUrl)) return false;
    const [a, b] = [this.parts, other.parts];
    return (Object.keys(a) as (keyof ParsedUrl)[]).every((part) => a[part] === b[part]);
  }
}

export const urlLibrary: Library = {
  functions: {
    getEscapedPath: [part('url_get_escaped_path', ({ escapedPath }) => escapedPath)],
    getHost: [part('url_get_host', ({ host }) => host)],
    getHostname: [part('url_get_hostname', ({ host }) => splitHost(host).name)],
    getPort: [part('url_get_port', ({ host }) => splitHost(host).port)],
    getQuery: [method<[CelUrl]>('url_get_query', [URL_TYPE], mapOf(STRING, listOf(STRING)), getQuery)],
    getScheme: [part('url_get_scheme', ({ scheme }) => scheme)],
    isURL: [
      func<[string]>('is_url_string', [STRING], BOOL, (budget, text) => {
        budget.charge(PARSE_COST + bytesCost(text.length * 2));
        const isUrl = urlFault(text) === undefined;
        if (!isUrl) budget.charge(THROW_COST);
        return isUrl;
      }),
    ],
    url: [
      func<[string]>('string_to_url', [STRING], URL_TYPE, (budget, text) => {
        budget.charge(PARSE_COST + bytesCost(text.length * 4));
        const parts = parseUrl(text);
        if (typeof parts !== 'string') return new CelUrl(parts);
        budget.charge(THROW_COST);
        return new CelFault(`URL parse error during conversion from string: ${parts}`);
      }),
    ],
  },
};

function part(id: string, read: (parts: ParsedUrl) => string): Overload {
  return method<[CelUrl]>(id, [URL_TYPE], STRING, (_budget, url) => read(url.parts));
}

function splitHost(host: string): { name: string; port: string } {
  const [colon] = /:[0-9]*$/.exec(host) ?? [''];
  const name = colon === '' ? host : host.slice(0, -colon.length);
  const isBracketed = name.startsWith('[') && name.endsWith(']');
  return { name: isBracketed ? name.slice(1, -1) : name, port: colon.slice(1) };
}

/** What cannot be unescaped is left out, as Go does. */
function getQuery(budget: Budget, url: CelUrl): CelMap | CelFault {
  const query = url.parts.query ?? '';
  budget.charge(bytesCost(query.length * 2));
  const values = new Map<string, string[]>();
  for (const pair of query.split('&')) {
    budget.charge(pair.includes('%') ? UNESCAPE_COST : 2);
    if (pair === '' || pair.includes(';')) continue;
    const equals = pair.indexOf('=');
    const key = unescaped(equals < 0 ? pair : pair.slice(0, equals));
    const value = unescaped(equals < 0 ? '' : pair.slice(equals + 1));
    if (key === undefined || value === undefined) continue;
    const known = values.get(key);
    if (known === undefined) values.set(key, [value]);
    else known.push(value);
  }
  return EntryMap.of([...values].map(([key, texts]) => [key, new ArrayList(texts)] as const));
}

function unescaped(text: string): string | undefined {
  try {
    checkEscapes(text, 'query');
    return unescapeUrl(text, 'query');
  } catch (error) {
    if (error instanceof UrlError) return undefined;
    throw error;
  }
}
