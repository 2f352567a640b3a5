/** The address of a request as it may be told: a client may put anything into a query, a token, too. Pure. */

const MAX_LENGTH = 2048;
const MAX_PARAMETERS = 32;
const HIDDEN = 'REDACTED';

/** Parameters of the API whose values say how a request was meant. */
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
  if (query.size === 0) return cut(path, MAX_LENGTH);
  const shown = new URLSearchParams();
  let count = 0;
  for (const [name, value] of query) {
    if (++count > MAX_PARAMETERS) break;
    shown.append(name, SHOWN.has(name) ? value : HIDDEN);
  }
  return cut(`${path}?${shown.toString()}`, MAX_LENGTH);
}

export function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length)}...TRUNCATED`;
}
