/**
 * The target of a request as the client sent it. Its path is never resolved, because authorization is decided on the
 * path as written. Pure.
 */

export interface RequestTarget {
  /** The path without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
}

/** Splits the target into path and query. Returns undefined if it is not an absolute path. */
export function splitTarget(target: string): RequestTarget | undefined {
  if (!target.startsWith('/')) return undefined;
  const mark = target.indexOf('?');
  if (mark < 0) return { path: target, query: new URLSearchParams() };
  return { path: target.slice(0, mark), query: new URLSearchParams(target.slice(mark + 1)) };
}

/** Reports whether another server could read a different path from it, by resolving dots or decoding a slash. */
export function isAmbiguous(path: string): boolean {
  if (!path.includes('.') && !path.includes('%')) return false;
  return path.split('/').some((segment) => {
    const plain = segment.replace(/%2e/gi, '.');
    return plain === '.' || plain === '..' || /%(?:2f|5c|00|(?![0-9a-f]{2}))/i.test(segment);
  });
}
