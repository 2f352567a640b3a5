/** Formats the URI of a request for the log: a query may contain anything, including a token. Pure. */

const MAX_LENGTH = 2048;
const MAX_PARAMETERS = 32;
const HIDDEN = 'REDACTED';

/** API parameters whose values are safe to log. */
const SHOWN: ReadonlySet<string> = new Set([
  'allowWatchBookmarks',
  'container',
  'dryRun',
  'fieldManager',
  'fieldSelector',
  'fieldValidation',
  'follow',
  'force',
  'gracePeriodSeconds',
  'ignoreStoreReadErrorWithClusterBreakingPotential',
  'labelSelector',
  'limit',
  'limitBytes',
  'orphanDependents',
  'pretty',
  'previous',
  'propagationPolicy',
  'resourceVersion',
  'resourceVersionMatch',
  'sendInitialEvents',
  'sinceSeconds',
  'sinceTime',
  'tailLines',
  'timeout',
  'timeoutSeconds',
  'timestamps',
  'watch',
]);

export function requestUri(path: string, query: URLSearchParams): string {
  if (query.size === 0) return truncate(path, MAX_LENGTH);
  const shown = new URLSearchParams();
  let count = 0;
  for (const [name, value] of query) {
    if (++count > MAX_PARAMETERS) break;
    shown.append(name, SHOWN.has(name) ? value : HIDDEN);
  }
  return truncate(`${path}?${shown.toString()}`, MAX_LENGTH);
}

export function truncate(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length)}...TRUNCATED`;
}
