/** Parses URLs as Go's net/url does, which differs from browsers: an absolute URI or an absolute path. */
import { quoteForMessage } from '#cel/extensions/go-quote.ts';
import { UrlError, checkEscapes, escapedPath, unescapeUrl } from '#cel/kubernetes/url-escape.ts';

export interface ParsedUrl {
  readonly scheme: string;
  /** The part after the scheme in `mailto:somebody`; host and path are then empty. */
  readonly opaque: string;
  /** As written; undefined if absent. */
  readonly user: string | undefined;
  /** Unescaped, with the port. */
  readonly host: string;
  readonly escapedPath: string;
  /** Undefined if there is no question mark. */
  readonly query: string | undefined;
  /** Undefined if there is no number sign. */
  readonly fragment: string | undefined;
}

/** Returns why Go's ParseRequestURI rejects the text, or undefined if it accepts it. */
export function findUrlError(text: string): string | undefined {
  try {
    parse(text, true);
    return undefined;
  } catch (error) {
    if (error instanceof UrlError) return `parse ${quoteForMessage(text)}: ${error.message}`;
    throw error;
  }
}

/** Returns the error message as a string if the text is invalid. Unlike a request URI, the text can have a fragment. */
export function parseUrl(text: string): ParsedUrl | string {
  const fault = findUrlError(text);
  if (fault !== undefined) return fault;
  const hash = text.indexOf('#');
  const before = hash < 0 ? text : text.slice(0, hash);
  try {
    return { ...parse(before, false), fragment: hash < 0 ? undefined : text.slice(hash + 1) };
  } catch (error) {
    if (error instanceof UrlError) return `parse ${quoteForMessage(before)}: ${error.message}`;
    throw error;
  }
}

type WithoutFragment = Omit<ParsedUrl, 'fragment'>;

function parse(text: string, isRequest: boolean): WithoutFragment {
  if (/[\x00-\x1f\x7f]/.test(text)) throw new UrlError('net/url: invalid control character in URL');
  if (text === '' && isRequest) throw new UrlError('empty url');
  const { scheme, rest: afterScheme } = splitScheme(text);
  const question = afterScheme.indexOf('?');
  const rest = question < 0 ? afterScheme : afterScheme.slice(0, question);
  const query = question < 0 ? undefined : afterScheme.slice(question + 1);
  const nothing = { scheme, opaque: '', user: undefined, host: '', escapedPath: '', query };

  if (text === '*') return { ...nothing, escapedPath: '*' };
  if (!rest.startsWith('/')) {
    if (scheme !== '') return { ...nothing, opaque: rest };
    if (isRequest) throw new UrlError('invalid URI for request');
  }
  const hasAuthority = rest.startsWith('//') && (scheme !== '' || (!isRequest && !rest.startsWith('///')));
  if (!hasAuthority) return { ...nothing, escapedPath: checkPath(rest) };

  const slash = rest.indexOf('/', 2);
  const authority = slash < 0 ? rest.slice(2) : rest.slice(2, slash);
  const at = authority.lastIndexOf('@');
  const host = parseHost(authority.slice(at + 1));
  const user = at < 0 ? undefined : checkUser(authority.slice(0, at));
  return { ...nothing, user, host, escapedPath: checkPath(slash < 0 ? '' : rest.slice(slash)) };
}

function splitScheme(text: string): { scheme: string; rest: string } {
  const colon = /^[A-Za-z][A-Za-z0-9+\-.]*:/.exec(text)?.[0];
  if (colon !== undefined) return { scheme: colon.slice(0, -1).toLowerCase(), rest: text.slice(colon.length) };
  if (text.startsWith(':')) throw new UrlError('missing protocol scheme');
  return { scheme: '', rest: text };
}

function checkPath(path: string): string {
  checkEscapes(path, 'path');
  return escapedPath(path);
}

function checkUser(user: string): string {
  if (!/^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/.test(user)) throw new UrlError('net/url: invalid userinfo');
  checkEscapes(user, 'user');
  return user;
}

function parseHost(host: string): string {
  if (!host.startsWith('[')) {
    const colon = host.lastIndexOf(':');
    if (colon >= 0) checkPort(host.slice(colon));
    return unescapeHost(host, 'host');
  }
  const bracket = host.lastIndexOf(']');
  if (bracket < 0) throw new UrlError("missing ']' in host");
  checkPort(host.slice(bracket + 1));
  const zone = host.slice(0, bracket).indexOf('%25');
  if (zone < 0) return unescapeHost(host, 'host');
  return (
    unescapeHost(host.slice(0, zone), 'host') +
    unescapeHost(host.slice(zone, bracket), 'zone') +
    unescapeHost(host.slice(bracket), 'host')
  );
}

function unescapeHost(text: string, part: 'host' | 'zone'): string {
  checkEscapes(text, part);
  return unescapeUrl(text, part);
}

function checkPort(text: string): void {
  if (!/^(?::[0-9]*)?$/.test(text)) throw new UrlError(`invalid port ${quoteForMessage(text)} after host`);
}
