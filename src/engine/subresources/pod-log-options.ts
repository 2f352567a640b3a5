/** Parses and validates PodLogOptions with kube-apiserver's messages, and formats them for a kubelet. Pure. */
import { badRequest } from '#kube/api-error.ts';
import { forbiddenField, invalidValue, type FieldError } from '#kube/field-error.ts';

interface PodLogOptions {
  readonly container: string;
  readonly follow: boolean;
  readonly previous: boolean;
  readonly timestamps: boolean;
  readonly sinceSeconds: bigint | undefined;
  /** RFC 3339 with whole seconds. */
  readonly sinceTime: string | undefined;
  readonly tailLines: bigint | undefined;
  readonly limitBytes: bigint | undefined;
  readonly stream: string | undefined;
  readonly insecureSkipTLSVerifyBackend: boolean;
}

/** Throws 400 for invalid values. */
export function parseLogOptions(query: URLSearchParams): PodLogOptions {
  return {
    container: query.get('container') ?? '',
    follow: flag(query, 'follow'),
    previous: flag(query, 'previous'),
    timestamps: flag(query, 'timestamps'),
    sinceSeconds: integer(query, 'sinceSeconds'),
    sinceTime: time(query, 'sinceTime'),
    tailLines: integer(query, 'tailLines'),
    limitBytes: integer(query, 'limitBytes'),
    stream: query.get('stream') || undefined,
    insecureSkipTLSVerifyBackend: flag(query, 'insecureSkipTLSVerifyBackend'),
  };
}

/** Parses a flag like Kubernetes: present means true, unless it is false. */
function flag(query: URLSearchParams, name: string): boolean {
  const value = query.get(name);
  return value !== null && value !== '0' && value.toLowerCase() !== 'false';
}

const MAX_INT64 = 2n ** 63n - 1n;

function integer(query: URLSearchParams, name: string): bigint | undefined {
  const text = query.get(name);
  if (text === null || text === '') return undefined;
  const parseError = (why: string) => badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: ${why}`);
  if (!/^[+-]?\d{1,40}$/.test(text)) throw parseError('invalid syntax');
  const value = BigInt(text.replace('+', ''));
  if (value > MAX_INT64 || value < -MAX_INT64 - 1n) throw parseError('value out of range');
  return value;
}

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;
const LAYOUT = '2006-01-02T15:04:05Z07:00';

function time(query: URLSearchParams, name: string): string | undefined {
  const text = query.get(name);
  if (text === null || text === '') return undefined;
  const ms = RFC3339.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(ms)) return `${new Date(ms).toISOString().slice(0, 19)}Z`;
  const shown = JSON.stringify(text);
  throw badRequest(`parsing time ${shown} as ${JSON.stringify(LAYOUT)}: cannot parse ${shown} as "2006"`);
}

export function checkLogOptions(options: PodLogOptions): FieldError[] {
  const { tailLines, limitBytes, sinceSeconds, sinceTime, stream } = options;
  const errors: FieldError[] = [];
  if (tailLines !== undefined && tailLines < 0n) {
    errors.push(invalidValue('tailLines', Number(tailLines), 'must be greater than or equal to 0'));
  }
  if (limitBytes !== undefined && limitBytes < 1n) {
    errors.push(invalidValue('limitBytes', Number(limitBytes), 'must be greater than 0'));
  }
  if (sinceSeconds !== undefined && sinceTime !== undefined) {
    errors.push(forbiddenField('', 'at most one of `sinceTime` or `sinceSeconds` may be specified'));
  } else if (sinceSeconds !== undefined && sinceSeconds < 1n) {
    errors.push(invalidValue('sinceSeconds', Number(sinceSeconds), 'must be greater than 0'));
  }
  // Kubernetes has it behind a feature gate that is off in 1.32.
  if (stream !== undefined) errors.push(forbiddenField('stream', 'may not be specified'));
  return errors;
}

/** Returns the query of a kubelet's /containerLogs, in alphabetical order. */
export function kubeletLogQuery(options: PodLogOptions): string {
  const { follow, previous, timestamps, sinceSeconds, sinceTime, tailLines, limitBytes } = options;
  const query = new URLSearchParams();
  if (follow) query.set('follow', 'true');
  if (limitBytes !== undefined) query.set('limitBytes', String(limitBytes));
  if (previous) query.set('previous', 'true');
  if (sinceSeconds !== undefined) query.set('sinceSeconds', String(sinceSeconds));
  if (sinceTime !== undefined) query.set('sinceTime', sinceTime);
  if (tailLines !== undefined) query.set('tailLines', String(tailLines));
  if (timestamps) query.set('timestamps', 'true');
  return query.size === 0 ? '' : `?${query.toString()}`;
}
