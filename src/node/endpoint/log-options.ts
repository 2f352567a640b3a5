/** Parses the query of /containerLogs like a kubelet. Pure. */
import { badRequest } from '#kube/api-error.ts';

export interface ContainerLogOptions {
  readonly follow: boolean;
  readonly timestamps: boolean;
  readonly tailLines: number | undefined;
  readonly limitBytes: number | undefined;
  /** Milliseconds since the epoch; older lines are left out. */
  readonly sinceMs: number | undefined;
}

/** Throws ApiError 400 for an invalid query. */
export function parseContainerLogOptions(query: URLSearchParams, nowMs: number): ContainerLogOptions {
  if (parseFlag(query, 'previous'))
    throw badRequest('previous terminated container not found: only the current log is kept');
  const sinceSeconds = parseCount(query, 'sinceSeconds');
  return {
    follow: parseFlag(query, 'follow'),
    timestamps: parseFlag(query, 'timestamps'),
    tailLines: parseCount(query, 'tailLines'),
    limitBytes: parseCount(query, 'limitBytes'),
    sinceMs: sinceSeconds === undefined ? parseTime(query, 'sinceTime') : nowMs - sinceSeconds * 1000,
  };
}

function parseFlag(query: URLSearchParams, name: string): boolean {
  const value = query.get(name);
  return value !== null && value !== '0' && value.toLowerCase() !== 'false';
}

function parseCount(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === '') return undefined;
  if (!/^\d{1,19}$/.test(text)) throw badRequest(`${name} is ${JSON.stringify(text)}; expected a whole number`);
  return Number(text);
}

function parseTime(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === '') return undefined;
  const ms = Date.parse(text);
  if (Number.isNaN(ms)) throw badRequest(`${name} is ${JSON.stringify(text)}; expected a time in RFC 3339 format`);
  return ms;
}
