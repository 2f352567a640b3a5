/** What a path of subresources.kubevirt.io asks for. Pure. */
import { VM_VERBS, VMI_VERBS, type Verb } from '#api/can.ts';
import { DISK_VERBS, UPLOAD_VERB, type DiskVerb } from '#api/disk-stream.ts';
import { AGENT_CERTIFICATES } from '#api/agent-certificate.ts';
import { GUEST_READS, type GuestRead } from '#api/guest-info.ts';
import { SUBRESOURCES_GROUP } from '#api/names.ts';
import { isAmbiguous } from '#kube/request-target.ts';

export const VERSIONS = ['v1', 'v1alpha3'] as const;
export type SubresourceVersion = (typeof VERSIONS)[number];

export const RESOURCES = ['virtualmachines', 'virtualmachineinstances'] as const;
export type Resource = (typeof RESOURCES)[number];

export type Route =
  | { readonly kind: 'group' }
  | { readonly kind: 'resources'; readonly version: SubresourceVersion }
  | { readonly kind: 'version' }
  | { readonly kind: 'healthz' }
  | {
      readonly kind: 'verb';
      readonly resource: Resource;
      readonly verb: Verb;
      readonly method: 'PUT' | 'GET';
      readonly namespace: string;
      readonly name: string;
      /** Of portforward. */
      readonly forward?: Forward;
    }
  /** A WebSocket, too. */
  | { readonly kind: 'disk'; readonly verb: DiskVerb; readonly namespace: string; readonly name: string }
  /** A node wants a certificate by which our parts know it. */
  | { readonly kind: 'agent-certificate' }
  /** A WebSocket into the disk behind a claim; ours, as KubeVirt leaves this to CDI. */
  | { readonly kind: 'upload'; readonly namespace: string; readonly claim: string }
  /** The VM as it is, since there are no instance types: of a stored one, or of the one in the body. */
  | { readonly kind: 'expand'; readonly namespace: string; readonly name?: string }
  /** KubeVirt has it, we do not have it yet. */
  | { readonly kind: 'later'; readonly what: string }
  /** KubeVirt has it, and we never will. */
  | { readonly kind: 'never'; readonly why: string }
  | { readonly kind: 'bad'; readonly why: string }
  | { readonly kind: 'unknown' };

export interface Forward {
  readonly port: number;
  readonly protocol: 'tcp' | 'udp';
}

/** Of KubeVirt 1.9; each comes with the feature that it belongs to. */
const LATER: Readonly<Record<Resource, readonly string[]>> = {
  virtualmachines: ['memorydump', 'removememorydump', 'evacuate', 'objectgraph'],
  virtualmachineinstances: ['evacuate', 'backup', 'redefine-checkpoint', 'sev', 'objectgraph'],
};
const NEVER: Readonly<Record<string, string>> = {
  usbredir: 'usbredir is not supported: guests get no USB devices of clients',
  vsock: 'vsock is not supported: guests have no VSOCK device; portforward reaches their ports',
};
const LATER_PATHS: ReadonlySet<string> = new Set([
  'guestfs',
  'start-cluster-profiler',
  'stop-cluster-profiler',
  'dump-cluster-profiler',
]);

const CLAIMS = 'persistentvolumeclaims';

const UNKNOWN: Route = { kind: 'unknown' };

/** The path as it was written: who may ask was decided on that. One in which others could read another means nothing. */
export function parseRoute(path: string): Route {
  if (isAmbiguous(path)) return UNKNOWN;
  const [empty, apis, group, version, ...rest] = path.replace(/\/$/, '').split('/');
  if (empty !== '' || apis !== 'apis' || group !== SUBRESOURCES_GROUP) return UNKNOWN;
  if (version === undefined) return { kind: 'group' };
  const known = VERSIONS.find((one) => one === version);
  if (known === undefined) return UNKNOWN;
  const [first, ...more] = rest;
  if (first === undefined) return { kind: 'resources', version: known };
  if (first === 'namespaces') return namespaced(more);
  if (more.length > 0) return UNKNOWN;
  if (first === 'version' || first === 'healthz') return { kind: first };
  if (first === AGENT_CERTIFICATES) return { kind: 'agent-certificate' };
  return LATER_PATHS.has(first) ? { kind: 'later', what: first } : UNKNOWN;
}

function namespaced(segments: readonly string[]): Route {
  const [namespace, plural, name, subresource, ...deeper] = segments.map(decoded);
  if (plural === 'expand-vm-spec' && namespace && name === undefined) return { kind: 'expand', namespace };
  if (plural === CLAIMS) {
    const isUpload = namespace && name && subresource === UPLOAD_VERB && deeper.length === 0;
    return isUpload ? { kind: 'upload', namespace, claim: name } : UNKNOWN;
  }
  const resource = RESOURCES.find((one) => one === plural);
  if (!namespace || resource === undefined || !name || subresource === undefined) return UNKNOWN;
  if (subresource === 'portforward') return portForward({ resource, namespace, name }, deeper);
  const path = [subresource, ...deeper].join('/');
  const verb = verbsOf(resource).find((one) => one === path);
  if (verb !== undefined) return { kind: 'verb', resource, verb, method: methodOf(verb), namespace, name };
  if (resource === 'virtualmachineinstances' && deeper.length === 0 && Object.hasOwn(NEVER, subresource)) {
    return { kind: 'never', why: NEVER[subresource]! };
  }
  const diskVerb = DISK_VERBS.find((one) => one === subresource);
  if (resource === 'virtualmachines' && diskVerb !== undefined && deeper.length === 0) {
    return { kind: 'disk', verb: diskVerb, namespace, name };
  }
  if (resource === 'virtualmachines' && subresource === 'expand-spec' && deeper.length === 0) {
    return { kind: 'expand', namespace, name };
  }
  if (!LATER[resource].includes(subresource)) return UNKNOWN;
  return { kind: 'later', what: `${resource}/${path}` };
}

const MAX_PORT = 65_535;

/** `portforward/{port}[/{protocol}]`, TCP where none is named. */
function portForward(
  named: { readonly resource: Resource; readonly namespace: string; readonly name: string },
  [port, protocol = 'tcp', ...more]: readonly string[],
): Route {
  if (more.length > 0) return UNKNOWN;
  if (port === undefined || port === '') return { kind: 'bad', why: 'port must not be empty' };
  const number = /^\d{1,5}$/.test(port) ? Number(port) : 0;
  if (number < 1 || number > MAX_PORT) {
    return { kind: 'bad', why: `port ${JSON.stringify(port)} is no port; expected 1 to ${MAX_PORT}` };
  }
  if (protocol !== 'tcp' && protocol !== 'udp') {
    return { kind: 'bad', why: `protocol ${JSON.stringify(protocol)} is not known; expected tcp or udp` };
  }
  const forward: Forward = { port: number, protocol };
  return { kind: 'verb', verb: 'portforward', method: 'GET', forward, ...named };
}

export function verbsOf(resource: Resource): readonly Verb[] {
  return resource === 'virtualmachines' ? VM_VERBS : VMI_VERBS;
}

const READ_VERBS: ReadonlySet<Verb> = new Set(['console', 'vnc', 'vnc/screenshot', 'portforward']);

export function methodOf(verb: Verb): 'PUT' | 'GET' {
  return READ_VERBS.has(verb) || isGuestRead(verb) ? 'GET' : 'PUT';
}

/** What is an answer of the guest, and no stream. */
export function isGuestRead(verb: Verb): verb is GuestRead {
  return (GUEST_READS as readonly Verb[]).includes(verb);
}

/** What cannot be decoded names nothing. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return '';
  }
}
