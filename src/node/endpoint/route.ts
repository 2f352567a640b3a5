/** What a path of the node's endpoint asks for. Pure. */

export const INSTANCE_VERBS = ['pause', 'unpause', 'softreboot', 'reset'] as const;
export type InstanceVerb = (typeof INSTANCE_VERBS)[number];

export type EndpointRoute =
  | { readonly kind: 'healthz' }
  | { readonly kind: 'logs'; readonly namespace: string; readonly pod: string; readonly container: string }
  | { readonly kind: 'verb'; readonly verb: InstanceVerb; readonly namespace: string; readonly name: string }
  | { readonly kind: 'console'; readonly namespace: string; readonly name: string }
  | { readonly kind: 'unknown' };

const UNKNOWN: EndpointRoute = { kind: 'unknown' };

export function parseEndpointPath(path: string): EndpointRoute {
  const segments = path.split('/').slice(1).map(decoded);
  if (segments.includes('')) return UNKNOWN;
  const [first, second, third, fourth, ...rest] = segments;
  if (path === '/healthz') return { kind: 'healthz' };
  if (first === 'containerLogs') {
    if (second === undefined || third === undefined || fourth === undefined || rest.length > 0) return UNKNOWN;
    return { kind: 'logs', namespace: second, pod: third, container: fourth };
  }
  const [name, subresource, ...deeper] = rest;
  const instances = first === 'v1' && second === 'namespaces' && fourth === 'virtualmachineinstances';
  if (!instances || third === undefined || name === undefined || deeper.length > 0) return UNKNOWN;
  if (subresource === 'console') return { kind: 'console', namespace: third, name };
  const verb = INSTANCE_VERBS.find((known) => known === subresource);
  return verb === undefined ? UNKNOWN : { kind: 'verb', verb, namespace: third, name };
}

/** What cannot be decoded, or would decode to more than one segment, names nothing. */
function decoded(segment: string): string {
  try {
    const text = decodeURIComponent(segment);
    return text.includes('/') ? '' : text;
  } catch {
    return '';
  }
}
