/** The query of /containerLogs, as a kubelet takes it. Pure. */
import { badRequest } from '#kube/api-error.ts';

export interface LogOptions {
  readonly follow: boolean;
  readonly timestamps: boolean;
  readonly tailLines: number | undefined;
  readonly limitBytes: number | undefined;
  /** Milliseconds since the epoch: nothing that is older. */
  readonly sinceMs: number | undefined;
}

/** Throws 400. */
export function readLogOptions(query: URLSearchParams, nowMs: number): LogOptions {
  if (flag(query, 'previous')) throw badRequest('previous terminated container not found: one log is kept');
  const sinceSeconds = count(query, 'sinceSeconds');
  return {
    follow: flag(query, 'follow'),
    timestamps: flag(query, 'timestamps'),
    tailLines: count(query, 'tailLines'),
    limitBytes: count(query, 'limitBytes'),
    sinceMs: sinceSeconds === undefined ? time(query, 'sinceTime') : nowMs - sinceSeconds * 1000,
  };
}

function flag(query: URLSearchParams, name: string): boolean {
  const value = query.get(name);
  return value !== null && value !== '0' && value.toLowerCase() !== 'false';
}

function count(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === '') return undefined;
  if (!/^\d{1,19}$/.test(text)) throw badRequest(`${name} is ${JSON.stringify(text)}; expected a whole number`);
  return Number(text);
}

function time(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === '') return undefined;
  const ms = Date.parse(text);
  if (Number.isNaN(ms)) throw badRequest(`${name} is ${JSON.stringify(text)}; expected a time as in RFC 3339`);
  return ms;
}
