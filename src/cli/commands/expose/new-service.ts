/** Builds the Service of virtctl expose from its flags, with KubeVirt's messages. Pure. */
import { VM_NAME_LABEL } from '#api/names.ts';
import { vmNameLabelValue } from '#api/vm-name-label.ts';
import type { KubeObject } from '#kube/meta.ts';
import type { LabelSelector } from '#kube/selectors/label-selector.ts';
import { CommandError, UsageError } from '#lib/command-line/command-error.ts';

export type ExposedKind = 'vm' | 'vmi' | 'vmirs';

/** Accepts singular, plural and short names in any case. Throws UsageError. */
export function parseExposedKind(text: string): ExposedKind {
  const word = text.toLowerCase();
  if (/^(?:vmis?|virtualmachineinstances?)$/.test(word)) return 'vmi';
  if (/^(?:vms?|virtualmachines?)$/.test(word)) return 'vm';
  if (/^(?:vmirss?|virtualmachineinstancereplicasets?)$/.test(word)) return 'vmirs';
  throw new UsageError(`unsupported resource type: ${text}; expected vm, vmi or vmirs`);
}

export interface ExposeFlags {
  readonly name: string;
  readonly port: number;
  readonly targetPort?: string | undefined;
  readonly protocol?: string | undefined;
  readonly portName?: string | undefined;
  readonly type?: string | undefined;
  readonly nodePort: number;
  readonly clusterIp?: string | undefined;
  readonly externalIp?: string | undefined;
  readonly loadBalancerIp?: string | undefined;
  readonly ipFamily?: string | undefined;
  readonly ipFamilyPolicy?: string | undefined;
}

/** The part of a VM, an instance or a template that decides about ports. */
export interface ExposedSpec {
  readonly networks?: readonly { readonly name: string; readonly pod?: unknown }[] | undefined;
  readonly domain?:
    | {
        readonly devices?: {
          readonly interfaces?: readonly {
            readonly name: string;
            readonly ports?: readonly { readonly port: number; readonly protocol?: string }[];
          }[];
        };
      }
    | undefined;
}

export interface ExposedObject {
  readonly kind: ExposedKind;
  readonly name: string;
  readonly spec: ExposedSpec | undefined;
  /** The selector of a replica set. */
  readonly selector?: LabelSelector | undefined;
}

export const DEFAULT_PROTOCOL = 'TCP';
export const DEFAULT_TYPE = 'ClusterIP';
const PROTOCOLS = ['TCP', 'UDP'] as const;
const TYPES = ['ClusterIP', 'NodePort', 'LoadBalancer'] as const;
const FAMILIES = ['IPv4', 'IPv6', 'IPv4,IPv6', 'IPv6,IPv4'] as const;
const POLICIES = ['SingleStack', 'PreferDualStack', 'RequireDualStack'] as const;

/** The fields of the Service that follow from flags alone. Throws UsageError. */
export function parseExposeFlags(flags: ExposeFlags) {
  const { clusterIp, externalIp, loadBalancerIp, nodePort, port } = flags;
  const type = oneOf(flags.type || DEFAULT_TYPE, TYPES, 'unknown service type');
  const protocol = oneOf(flags.protocol || DEFAULT_PROTOCOL, PROTOCOLS, 'unknown protocol');
  const families = flags.ipFamily ? oneOf(flags.ipFamily, FAMILIES, 'unknown IPFamily/s').split(',') : [];
  const policy = flags.ipFamilyPolicy
    ? oneOf(flags.ipFamilyPolicy, POLICIES, 'unknown IPFamilyPolicy/s')
    : families.length > 1
      ? 'PreferDualStack'
      : undefined;
  if (port < 0 || port > 65_535) throw new UsageError(`--port must be between 1 and 65535, not ${port}`);
  if (nodePort !== 0 && type === 'ClusterIP') {
    throw new UsageError('--node-port requires --type NodePort or LoadBalancer');
  }
  if (nodePort !== 0 && port === 0) throw new UsageError('--node-port requires --port');
  const single = {
    ...(flags.portName && { name: flags.portName }),
    protocol,
    port,
    ...(flags.targetPort && { targetPort: targetPortOf(flags.targetPort) }),
    ...(nodePort !== 0 && { nodePort }),
  };
  return {
    name: flags.name,
    ports: port === 0 ? undefined : [single],
    spec: {
      type,
      ...(clusterIp && { clusterIP: clusterIp }),
      ...(externalIp && { externalIPs: [externalIp] }),
      ...(loadBalancerIp && { loadBalancerIP: loadBalancerIp }),
      ...(families.length > 0 && { ipFamilies: families }),
      ...(policy !== undefined && { ipFamilyPolicy: policy }),
    },
  };
}

function oneOf<W extends string>(text: string, words: readonly W[], problem: string): W {
  const found = words.find((word) => word.toLowerCase() === text.toLowerCase());
  if (found === undefined) throw new UsageError(`${problem}: ${text}; expected ${words.join(', ')}`);
  return found;
}

const targetPortOf = (text: string): number | string => (/^\d+$/.test(text) ? Number(text) : text);

/** Throws CommandError if the object has no ports or cannot be selected. */
export function buildService(
  { name, ports, spec }: ReturnType<typeof parseExposeFlags>,
  exposed: ExposedObject,
  namespace: string,
): KubeObject {
  const all = ports ?? podNetworkPorts(exposed.spec);
  if (all.length === 0) throw new CommandError("couldn't find port via --port flag or introspection");
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace },
    spec: { ...spec, ports: all, selector: selectorOf(exposed) },
  };
}

function selectorOf({ kind, name, selector }: ExposedObject): Readonly<Record<string, string>> {
  // The label is unique in a namespace, and each launcher pod has it; labels of users may match other machines.
  if (kind !== 'vmirs') return { [VM_NAME_LABEL]: vmNameLabelValue(name) };
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {};
  if (Object.keys(matchLabels).length === 0) {
    throw new CommandError('cannot expose VirtualMachineInstanceReplicaSet without any selector labels');
  }
  if (matchExpressions.length > 0) {
    throw new CommandError('cannot expose VirtualMachineInstanceReplicaSet with match expressions');
  }
  return matchLabels;
}

/** Returns the ports that the interface of the pod network names. */
function podNetworkPorts({ networks = [], domain }: ExposedSpec = {}): object[] {
  const network = networks.find(({ pod }) => pod !== undefined)?.name;
  const found = domain?.devices?.interfaces?.find(({ name }) => name === network);
  return (found?.ports ?? []).map(({ port, protocol = 'TCP' }, i) => ({ name: `port-${i + 1}`, protocol, port }));
}
