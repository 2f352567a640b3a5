/** Parses the paths of subresources.kubevirt.io. Pure. */
import { DISK_VERBS, UPLOAD_VERB, type DiskVerb } from '#api/storage/disk-stream.ts';
import { AGENT_CERTIFICATES } from '#api/agent-certificate.ts';
import { GUEST_READS, type GuestRead } from '#api/guest-info.ts';
import { SUBRESOURCES_GROUP } from '#api/names.ts';
import { isAmbiguous } from '#kube/request-target.ts';
import { VM_VERBS, VMI_VERBS, type SubresourceVerb } from '#api/verbs/verb.ts';
import { badRequest } from '#kube/api-error.ts';

export const VERSIONS = ['v1', 'v1alpha3'] as const;
export type SubresourceVersion = (typeof VERSIONS)[number];

export const RESOURCES = ['virtualmachines', 'virtualmachineinstances'] as const;
export type VmResource = (typeof RESOURCES)[number];

export type SubresourceRoute =
  | { readonly kind: 'group' }
  | { readonly kind: 'resources'; readonly version: SubresourceVersion }
  | { readonly kind: 'version' }
  | { readonly kind: 'healthz' }
  | {
      readonly kind: 'verb';
      readonly resource: VmResource;
      readonly verb: SubresourceVerb;
      readonly method: 'PUT' | 'GET';
      readonly namespace: string;
      readonly name: string;
      /** Set for portforward. */
      readonly forward?: Forward;
    }
  /** A WebSocket for the content of a disk. */
  | { readonly kind: 'disk'; readonly verb: DiskVerb; readonly namespace: string; readonly name: string }
  /** A request of a node agent for its certificate. */
  | { readonly kind: 'agent-certificate' }
  /** A WebSocket that writes the content of a claim. An addition of ours: KubeVirt leaves uploads to CDI. */
  | { readonly kind: 'upload'; readonly namespace: string; readonly claim: string }
  /** The expanded VM: the stored one of this name, or the one in the body. */
  | { readonly kind: 'expand'; readonly namespace: string; readonly name?: string }
  /** A path of KubeVirt that is not implemented yet. */
  | { readonly kind: 'unimplemented'; readonly what: string }
  /** A path of KubeVirt that is not supported by design. */
  | { readonly kind: 'unsupported'; readonly why: string }
  | { readonly kind: 'invalid'; readonly why: string }
  | { readonly kind: 'unknown' };

export interface Forward {
  readonly port: number;
  readonly protocol: 'tcp' | 'udp';
}

/** Subresources of KubeVirt 1.9 that will be implemented with the features to which they belong. */
const UNIMPLEMENTED: Readonly<Record<VmResource, readonly string[]>> = {
  virtualmachines: ['memorydump', 'removememorydump', 'evacuate', 'objectgraph'],
  virtualmachineinstances: ['evacuate', 'backup', 'redefine-checkpoint', 'sev', 'objectgraph'],
};
const UNSUPPORTED: Readonly<Record<string, string>> = {
  usbredir: 'usbredir is not supported: guests cannot use USB devices of clients',
  vsock: 'vsock is not supported: guests have no VSOCK device; use portforward',
};
const UNIMPLEMENTED_PATHS: ReadonlySet<string> = new Set([
  'guestfs',
  'start-cluster-profiler',
  'stop-cluster-profiler',
  'dump-cluster-profiler',
]);

const CLAIMS = 'persistentvolumeclaims';

const UNKNOWN: SubresourceRoute = { kind: 'unknown' };

/**
 * Parses a path. Authorization has used the path as it was sent, so an ambiguous path, which could be read differently,
 * is unknown.
 */
export function parseSubresourcePath(path: string): SubresourceRoute {
  if (isAmbiguous(path)) return UNKNOWN;
  const [empty, apis, group, version, ...rest] = path.replace(/\/$/, '').split('/');
  if (empty !== '' || apis !== 'apis' || group !== SUBRESOURCES_GROUP) return UNKNOWN;
  if (version === undefined) return { kind: 'group' };
  const known = VERSIONS.find((one) => one === version);
  if (known === undefined) return UNKNOWN;
  const [first, ...more] = rest;
  if (first === undefined) return { kind: 'resources', version: known };
  if (first === 'namespaces') return parseNamespaced(more);
  if (more.length > 0) return UNKNOWN;
  if (first === 'version' || first === 'healthz') return { kind: first };
  if (first === AGENT_CERTIFICATES) return { kind: 'agent-certificate' };
  return UNIMPLEMENTED_PATHS.has(first) ? { kind: 'unimplemented', what: first } : UNKNOWN;
}

function parseNamespaced(segments: readonly string[]): SubresourceRoute {
  const [namespace, plural, name, subresource, ...deeper] = segments.map(decodeSegment);
  if (plural === 'expand-vm-spec' && namespace && name === undefined) return { kind: 'expand', namespace };
  if (plural === CLAIMS) {
    const isUpload = namespace && name && subresource === UPLOAD_VERB && deeper.length === 0;
    return isUpload ? { kind: 'upload', namespace, claim: name } : UNKNOWN;
  }
  const resource = RESOURCES.find((one) => one === plural);
  if (!namespace || resource === undefined || !name || subresource === undefined) return UNKNOWN;
  if (subresource === 'portforward') return parsePortForward({ resource, namespace, name }, deeper);
  const path = [subresource, ...deeper].join('/');
  const verb = verbsOfResource(resource).find((one) => one === path);
  if (verb !== undefined) return { kind: 'verb', resource, verb, method: methodOf(verb), namespace, name };
  if (resource === 'virtualmachineinstances' && deeper.length === 0 && Object.hasOwn(UNSUPPORTED, subresource)) {
    return { kind: 'unsupported', why: UNSUPPORTED[subresource]! };
  }
  const diskVerb = DISK_VERBS.find((one) => one === subresource);
  if (resource === 'virtualmachines' && diskVerb !== undefined && deeper.length === 0) {
    return { kind: 'disk', verb: diskVerb, namespace, name };
  }
  if (resource === 'virtualmachines' && subresource === 'expand-spec' && deeper.length === 0) {
    return { kind: 'expand', namespace, name };
  }
  if (!UNIMPLEMENTED[resource].includes(subresource)) return UNKNOWN;
  return { kind: 'unimplemented', what: `${resource}/${path}` };
}

const MAX_PORT = 65_535;

/** Parses `portforward/{port}[/{protocol}]`; the default is TCP. */
function parsePortForward(
  target: { readonly resource: VmResource; readonly namespace: string; readonly name: string },
  [port, protocol = 'tcp', ...more]: readonly string[],
): SubresourceRoute {
  if (more.length > 0) return UNKNOWN;
  if (port === undefined || port === '') return { kind: 'invalid', why: 'port must not be empty' };
  const number = /^\d{1,5}$/.test(port) ? Number(port) : 0;
  if (number < 1 || number > MAX_PORT) {
    return { kind: 'invalid', why: `port ${JSON.stringify(port)} is not valid; expected 1 to ${MAX_PORT}` };
  }
  if (protocol !== 'tcp' && protocol !== 'udp') {
    return { kind: 'invalid', why: `protocol ${JSON.stringify(protocol)} is not valid; expected tcp or udp` };
  }
  const forward: Forward = { port: number, protocol };
  return { kind: 'verb', verb: 'portforward', method: 'GET', forward, ...target };
}

export function verbsOfResource(resource: VmResource): readonly SubresourceVerb[] {
  return resource === 'virtualmachines' ? VM_VERBS : VMI_VERBS;
}

const READ_VERBS: ReadonlySet<SubresourceVerb> = new Set(['console', 'vnc', 'vnc/screenshot', 'portforward']);

export function methodOf(verb: SubresourceVerb): 'PUT' | 'GET' {
  return READ_VERBS.has(verb) || isGuestRead(verb) ? 'GET' : 'PUT';
}

/** Reports whether the verb reads information from the guest in one response, not as a stream. */
export function isGuestRead(verb: SubresourceVerb): verb is GuestRead {
  return (GUEST_READS as readonly SubresourceVerb[]).includes(verb);
}

/** Decodes a path segment; '' if it is malformed. */
function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return '';
  }
}

/** Returns the path segments or query that follow the verb in the request to the node. */
export function buildPathSuffix(verb: SubresourceVerb, query: URLSearchParams, forward: Forward | undefined): string {
  switch (verb) {
    case 'vnc':
      return parseGoBoolean(query, 'preserveSession') ? '?preserveSession=true' : '';
    case 'vnc/screenshot':
      return parseGoBoolean(query, 'moveCursor') ? '?moveCursor=true' : '';
    default:
      return forward === undefined ? '' : `/${forward.port}/${forward.protocol}`;
  }
}

const TRUE: ReadonlySet<string> = new Set(['1', 't', 'T', 'true', 'TRUE', 'True']);
const FALSE: ReadonlySet<string> = new Set(['', '0', 'f', 'F', 'false', 'FALSE', 'False']);

/** Accepts the spellings of Go's strconv.ParseBool, which KubeVirt's clients use. */
function parseGoBoolean(query: URLSearchParams, name: string): boolean {
  const text = query.get(name) ?? '';
  if (TRUE.has(text)) return true;
  if (FALSE.has(text)) return false;
  throw badRequest(`${name} is ${JSON.stringify(text)}; expected true or false`);
}
