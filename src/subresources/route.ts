/** What a path of subresources.kubevirt.io asks for. Pure. */
import { VM_VERBS, VMI_VERBS, type Verb } from '#api/can.ts';
import { SUBRESOURCES_GROUP } from '#api/names.ts';

export const VERSIONS = ['v1', 'v1alpha3'] as const;
export type SubresourceVersion = (typeof VERSIONS)[number];

export type Route =
  | { readonly kind: 'group' }
  | { readonly kind: 'resources'; readonly version: SubresourceVersion }
  | { readonly kind: 'version' }
  | { readonly kind: 'healthz' }
  | {
      readonly kind: 'verb';
      readonly verb: Verb;
      readonly method: 'PUT' | 'GET';
      readonly namespace: string;
      readonly name: string;
    }
  /** KubeVirt has it, we do not have it yet. */
  | { readonly kind: 'later'; readonly what: string }
  | { readonly kind: 'unknown' };

const VMS = 'virtualmachines';
const VMIS = 'virtualmachineinstances';

/** Of KubeVirt 1.9; each comes with the feature that it belongs to. */
const LATER: Readonly<Record<string, readonly string[]>> = {
  [VMS]: [
    'migrate',
    'addvolume',
    'removevolume',
    'memorydump',
    'removememorydump',
    'evacuate',
    'expand-spec',
    'portforward',
    'objectgraph',
  ],
  [VMIS]: [
    'freeze',
    'unfreeze',
    'addvolume',
    'removevolume',
    'evacuate',
    'backup',
    'redefine-checkpoint',
    'sev',
    'vnc',
    'usbredir',
    'vsock',
    'portforward',
    'guestosinfo',
    'userlist',
    'filesystemlist',
    'objectgraph',
  ],
};
const LATER_PATHS: ReadonlySet<string> = new Set([
  'guestfs',
  'start-cluster-profiler',
  'stop-cluster-profiler',
  'dump-cluster-profiler',
]);

const UNKNOWN: Route = { kind: 'unknown' };

export function parseRoute(path: string): Route {
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
  return LATER_PATHS.has(first) ? { kind: 'later', what: first } : UNKNOWN;
}

function namespaced(segments: readonly string[]): Route {
  const [namespace, resource, name, subresource, ...deeper] = segments.map(decoded);
  if (resource === 'expand-vm-spec' && name === undefined) return { kind: 'later', what: resource };
  if (namespace === undefined || namespace === '' || resource === undefined || name === undefined || name === '') {
    return UNKNOWN;
  }
  if (subresource === undefined) return UNKNOWN;
  if (deeper.length === 0) {
    const verb = verbOf(resource, subresource);
    if (verb !== undefined) return { kind: 'verb', verb, method: methodOf(verb), namespace, name };
  }
  const later = Object.hasOwn(LATER, resource) && LATER[resource]!.includes(subresource);
  return later ? { kind: 'later', what: [resource, subresource, ...deeper].join('/') } : UNKNOWN;
}

function verbOf(resource: string, subresource: string): Verb | undefined {
  const verbs: readonly Verb[] = resource === VMS ? VM_VERBS : resource === VMIS ? VMI_VERBS : [];
  return verbs.find((verb) => verb === subresource);
}

export function methodOf(verb: Verb): 'PUT' | 'GET' {
  return verb === 'console' ? 'GET' : 'PUT';
}

export function resourceOf(verb: Verb): string {
  return (VM_VERBS as readonly Verb[]).includes(verb) ? VMS : VMIS;
}

/** What cannot be decoded names nothing. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return '';
  }
}
