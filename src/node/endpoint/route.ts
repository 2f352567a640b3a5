/** What a path of the node's endpoint asks for. Pure. */
import { DISK_VERBS, UPLOAD_VERB, type DiskVerb } from '#api/disk-stream.ts';
import { GUEST_READS, type GuestRead } from '#api/guest-info.ts';
import { HOST_VERBS, hostPath, type HostVerb } from '#api/host-api.ts';
import { isAmbiguous } from '#kube/request-target.ts';
import type { GuestPort } from '#node/hypervisor/guest-lines.ts';

export const INSTANCE_VERBS = ['pause', 'unpause', 'freeze', 'unfreeze', 'softreboot', 'reset'] as const;
export type InstanceVerb = (typeof INSTANCE_VERBS)[number];

/** Whose request becomes the content of the disk behind a claim. */
export type ClaimVerb = DiskVerb | typeof UPLOAD_VERB;
const CLAIM_VERBS: readonly ClaimVerb[] = [...DISK_VERBS, UPLOAD_VERB];

export const MIGRATIONS_PATH = '/v1/migrations';

export type EndpointRoute =
  | { readonly kind: 'healthz' }
  | { readonly kind: 'logs'; readonly namespace: string; readonly pod: string; readonly container: string }
  | { readonly kind: 'verb'; readonly verb: InstanceVerb; readonly namespace: string; readonly name: string }
  | { readonly kind: 'guest'; readonly read: GuestRead; readonly namespace: string; readonly name: string }
  | { readonly kind: 'console'; readonly namespace: string; readonly name: string }
  | { readonly kind: 'vnc'; readonly namespace: string; readonly name: string }
  | { readonly kind: 'screenshot'; readonly namespace: string; readonly name: string }
  | { readonly kind: 'port'; readonly namespace: string; readonly name: string; readonly guestPort: GuestPort }
  | { readonly kind: 'disk'; readonly verb: ClaimVerb; readonly namespace: string; readonly claim: string }
  | { readonly kind: 'host'; readonly verb: HostVerb }
  /** Guests on their way from another node, and what nodes ask about them. */
  | { readonly kind: 'migrations' }
  | { readonly kind: 'unknown' };

const UNKNOWN: EndpointRoute = { kind: 'unknown' };

export function parseEndpointPath(path: string): EndpointRoute {
  if (isAmbiguous(path)) return UNKNOWN;
  const segments = path.split('/').slice(1).map(decoded);
  if (segments.includes('')) return UNKNOWN;
  const [first, second, third, fourth, ...rest] = segments;
  if (path === '/healthz') return { kind: 'healthz' };
  if (path === MIGRATIONS_PATH) return { kind: 'migrations' };
  const hostVerb = HOST_VERBS.find((known) => path === hostPath(known));
  if (hostVerb !== undefined) return { kind: 'host', verb: hostVerb };
  if (first === 'containerLogs') {
    if (second === undefined || third === undefined || fourth === undefined || rest.length > 0) return UNKNOWN;
    return { kind: 'logs', namespace: second, pod: third, container: fourth };
  }
  const [name, subresource, ...deeper] = rest;
  const isNamespaced = first === 'v1' && second === 'namespaces';
  if (!isNamespaced || third === undefined || name === undefined) return UNKNOWN;
  if (fourth === 'virtualmachineinstances' && deeper.length > 0) {
    return belowInstance({ namespace: third, name }, [subresource, ...deeper]);
  }
  if (deeper.length > 0) return UNKNOWN;
  if (fourth === 'persistentvolumeclaims') {
    const diskVerb = CLAIM_VERBS.find((known) => known === subresource);
    return diskVerb === undefined ? UNKNOWN : { kind: 'disk', verb: diskVerb, namespace: third, claim: name };
  }
  if (fourth !== 'virtualmachineinstances') return UNKNOWN;
  if (subresource === 'console' || subresource === 'vnc') return { kind: subresource, namespace: third, name };
  const read = GUEST_READS.find((known) => known === subresource);
  if (read !== undefined) return { kind: 'guest', read, namespace: third, name };
  const verb = INSTANCE_VERBS.find((known) => known === subresource);
  return verb === undefined ? UNKNOWN : { kind: 'verb', verb, namespace: third, name };
}

const MAX_PORT = 65_535;

/** `vnc/screenshot`, `portforward/22/tcp`. */
function belowInstance(
  instance: { readonly namespace: string; readonly name: string },
  [subresource, word, protocol, ...more]: readonly (string | undefined)[],
): EndpointRoute {
  if (subresource === 'vnc' && word === 'screenshot' && protocol === undefined)
    return { kind: 'screenshot', ...instance };
  if (subresource !== 'portforward' || more.length > 0) return UNKNOWN;
  const port = /^\d{1,5}$/.test(word ?? '') ? Number(word) : 0;
  if (port < 1 || port > MAX_PORT || (protocol !== 'tcp' && protocol !== 'udp')) return UNKNOWN;
  return { kind: 'port', ...instance, guestPort: { port, protocol } };
}

/** What cannot be decoded names nothing. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return '';
  }
}
