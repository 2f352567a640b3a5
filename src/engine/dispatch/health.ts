/** /livez, /readyz and /healthz: named checks, listed with `?verbose`, skipped with `?exclude=`. */
import type { BytesResponse } from '#engine/request/request.ts';
import type { Store } from '#engine/store/store.ts';

export interface HealthCheck {
  readonly name: string;
  /** Returns why the check fails, or undefined if it passes. */
  check(): string | undefined;
}

const ping: HealthCheck = { name: 'ping', check: () => undefined };

function storeCheck(store: Store): HealthCheck {
  return { name: 'store', check: () => store.fault?.message };
}

export interface HealthChecks {
  readonly live: readonly HealthCheck[];
  readonly ready: readonly HealthCheck[];
}

/**
 * Returns the checks of a server. `more` are the checks of other components in its process. A store that cannot write is
 * not ready, but alive: a restart would not help, and reads still work.
 */
export function healthChecks(store: Store, started: () => boolean, more: readonly HealthCheck[] = []): HealthChecks {
  const start: HealthCheck = { name: 'start', check: () => (started() ? undefined : 'still starting') };
  return { live: [ping], ready: [ping, storeCheck(store), start, ...more] };
}

export function respondHealth(
  path: string,
  query: URLSearchParams,
  { live, ready }: HealthChecks,
): BytesResponse | undefined {
  const [, endpoint = '', only, ...rest] = path.split('/');
  if (rest.length > 0) return undefined;
  const checks = endpoint === 'livez' ? live : ready;
  if (only !== undefined && only !== '') {
    const check = checks.find(({ name }) => name === only);
    return check && respondChecks(endpoint, [check], query);
  }
  const excluded = new Set(query.getAll('exclude'));
  return respondChecks(
    endpoint,
    checks.filter(({ name }) => !excluded.has(name)),
    query,
  );
}

function respondChecks(endpoint: string, checks: readonly HealthCheck[], query: URLSearchParams): BytesResponse {
  const results = checks.map(({ name, check }) => ({ name, problem: check() }));
  const failed = results.some(({ problem }) => problem !== undefined);
  if (!failed && !query.has('verbose')) return text(200, 'ok');
  const lines = results.map(({ name, problem }) =>
    problem === undefined ? `[+]${name} ok` : `[-]${name} failed: ${problem}`,
  );
  lines.push(`${endpoint} check ${failed ? 'failed' : 'passed'}`, '');
  return text(failed ? 500 : 200, lines.join('\n'));
}

function text(status: number, body: string): BytesResponse {
  const headers = { 'x-content-type-options': 'nosniff' };
  return { status, contentType: 'text/plain; charset=utf-8', headers, body: Buffer.from(body) };
}
