/** Parses the paths of the node's endpoint. Pure. */
import { DISK_VERBS, UPLOAD_VERB, type DiskVerb } from '#api/storage/disk-stream.ts';
import { GUEST_READS, type GuestRead } from '#api/guest-info.ts';
import { HOST_VERBS, hostPath, type HostVerb } from '#api/host-api.ts';
import { isAmbiguous } from '#kube/request-target.ts';
import type { GuestPort } from '#node/hypervisor/guest-access.ts';

const GUEST_VERBS = ['pause', 'unpause', 'freeze', 'unfreeze', 'softreboot', 'reset'] as const;
export type GuestVerb = (typeof GUEST_VERBS)[number];

/** The verbs that read or replace the content of a claim. */
type ClaimVerb = DiskVerb | typeof UPLOAD_VERB;
const CLAIM_VERBS: readonly ClaimVerb[] = [...DISK_VERBS, UPLOAD_VERB];

export const MIGRATIONS_PATH = '/v1/migrations';

export type EndpointRoute =
  | { readonly kind: 'healthz' }
  | { readonly kind: 'logs'; readonly namespace: string; readonly pod: string; readonly container: string }
  | { readonly kind: 'verb'; readonly verb: GuestVerb; readonly namespace: string; readonly name: string }
  | { readonly kind: 'guest'; readonly read: GuestRead; readonly namespace: string; readonly name: string }
  | { readonly kind: 'console'; readonly namespace: string; readonly name: string }
  | { readonly kind: 'vnc'; readonly namespace: string; readonly name: string }
  | { readonly kind: 'screenshot'; readonly namespace: string; readonly name: string }
  | { readonly kind: 'port'; readonly namespace: string; readonly name: string; readonly guestPort: GuestPort }
  | { readonly kind: 'disk'; readonly verb: ClaimVerb; readonly namespace: string; readonly claim: string }
  | { readonly kind: 'host'; readonly verb: HostVerb }
  /** Migrations from other nodes, and their queries for outcomes. */
  | { readonly kind: 'migrations' }
  | { readonly kind: 'unknown' };

const UNKNOWN: EndpointRoute = { kind: 'unknown' };

export function parseEndpointPath(path: string): EndpointRoute {
  if (isAmbiguous(path)) return UNKNOWN;
  const segments = path.split('/').slice(1).map(decodeSegment);
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
    return parseInstancePath({ namespace: third, name }, [subresource, ...deeper]);
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
  const verb = GUEST_VERBS.find((known) => known === subresource);
  return verb === undefined ? UNKNOWN : { kind: 'verb', verb, namespace: third, name };
}

const MAX_PORT = 65_535;

/** Parses the rest of a path below an instance: `vnc/screenshot`, `portforward/22/tcp`. */
function parseInstancePath(
  instance: { readonly namespace: string; readonly name: string },
  [subresource, argument, protocol, ...more]: readonly (string | undefined)[],
): EndpointRoute {
  if (subresource === 'vnc' && argument === 'screenshot' && protocol === undefined)
    return { kind: 'screenshot', ...instance };
  if (subresource !== 'portforward' || more.length > 0) return UNKNOWN;
  const port = /^\d{1,5}$/.test(argument ?? '') ? Number(argument) : 0;
  if (port < 1 || port > MAX_PORT || (protocol !== 'tcp' && protocol !== 'udp')) return UNKNOWN;
  return { kind: 'port', ...instance, guestPort: { port, protocol } };
}

/** Returns '' for a segment that cannot be decoded. */
function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return '';
  }
}
