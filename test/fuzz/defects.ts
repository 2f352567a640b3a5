/** Checks for answers that no request may get, and a text form of requests from which they can be sent again. */
import type { FuzzAnswer } from '#test/fuzz/in-process-api.ts';
import type { FuzzRequest } from '#test/fuzz/requests.ts';

/** Returns the defect of an answer, or undefined if the answer is allowed. */
export function defectOf({ status, contentType, text }: FuzzAnswer): string | undefined {
  if (Reflect.has({}, 'polluted')) return 'a prototype was changed';
  if (status === 504 && text.includes('Too large resource version')) return undefined;
  // As in Kubernetes: the logs of a pod on a node that reports no address.
  if (status === 500 && text.includes('no preferred addresses found')) return undefined;
  if (status >= 500) return `answered ${status}: ${shorten(text)}`;
  if (status < 200) return `answered ${status}`;
  if (contentType !== 'application/json' || text === '') return undefined;
  try {
    const body = JSON.parse(text) as { kind?: unknown; code?: unknown };
    if (status >= 400 && (body.kind !== 'Status' || body.code !== status)) return `${status} without its Status`;
    return undefined;
  } catch {
    return `answered text that is not JSON: ${shorten(text)}`;
  }
}

/** Returns one line with the whole request. */
export function describeRequest({ method, url, contentType, accept, body }: FuzzRequest): string {
  const text = body.toString('utf8');
  const isText = Buffer.from(text).equals(body);
  const shown = isText ? `body ${JSON.stringify(shorten(text, 1500))}` : `base64 ${body.toString('base64')}`;
  return `${method} ${url} (${contentType || 'no type'}; accept ${accept || 'none'}) ${shown}`;
}

export function shorten(text: string, most = 600): string {
  return text.length > most ? `${text.slice(0, most)}... (${text.length})` : text;
}
