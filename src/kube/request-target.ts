/**
 * The target of a request as it came: its path is never resolved, for who may ask is decided on the path as it is written. Pure.
 */

export interface RequestTarget {
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
}

/** Undefined for what is no path from the root. */
export function splitTarget(target: string): RequestTarget | undefined {
  if (!target.startsWith('/')) return undefined;
  const mark = target.indexOf('?');
  if (mark < 0) return { path: target, query: new URLSearchParams() };
  return { path: target.slice(0, mark), query: new URLSearchParams(target.slice(mark + 1)) };
}

/** Whether another server could read another path from it, by resolving dots or decoding a slash. */
export function isAmbiguous(path: string): boolean {
  if (!path.includes('.') && !path.includes('%')) return false;
  return path.split('/').some((segment) => {
    const plain = segment.replace(/%2e/gi, '.');
    return plain === '.' || plain === '..' || /%(?:2f|5c|00|(?![0-9a-f]{2}))/i.test(segment);
  });
}
