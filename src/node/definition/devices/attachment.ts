/** Defines how the interfaces of a guest are connected to networks. Pure. */
import { createHash } from 'node:crypto';
import type { Interface, Network } from '#api/domain/interface.ts';
import type { PodAddresses } from '#api/network/pod-addresses.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { invalidValue, type FieldError } from '#kube/field-error.ts';
import {
  addressAt,
  formatIpAddress,
  IpAddressError,
  parseInterfaceAddress,
  parseIpNetwork,
  type IpNetwork,
} from '#lib/ip-address.ts';
import type { DomainNetwork, InterfaceBackend, NetworkAttachment } from '#node/hardware/domain-definition.ts';

/** The networks of an instance, as they are on this node. */
export interface NetworkFacts {
  readonly pod: DomainNetwork['pod'];
  /** The network of `pod` networks; undefined: they are in user mode. */
  readonly podNetwork: NetworkAttachment['network'] | undefined;
  /** The addresses of the pod; none if plugins choose them. */
  readonly addresses: PodAddresses;
  /** CNI configuration lists as JSON, by the name of the `multus` network. */
  readonly definitions: ReadonlyMap<string, string>;
}

const POD_INTERFACE = 'eth0';
const POD_TAP = 'tap0';
const HASH_LENGTH = 11;
const DEFAULT_CIDR = '10.0.2.0/24';
const DEFAULT_CIDR_V6 = 'fd10:0:2::/120';
const CLUSTER_DOMAIN = 'cluster.local';
const MAX_HOSTNAME_LENGTH = 63;
/** The gateway of a private network has the first address, the guest the second. */
const GUEST_INDEX = 2n;

/** The parts of an instance that name its guest. */
interface NamedInstance {
  readonly metadata: { readonly namespace?: string; readonly name: string };
  readonly spec: Pick<VmiSpec, 'hostname' | 'subdomain'>;
}

export function defineNetwork({ metadata, spec }: NamedInstance, { pod }: NetworkFacts): DomainNetwork {
  const services = `${metadata.namespace ?? ''}.svc.${CLUSTER_DOMAIN}`;
  const hostname = spec.hostname ?? (metadata.name.split('.')[0] ?? '').slice(0, MAX_HOSTNAME_LENGTH);
  return {
    pod,
    hostname,
    searchDomains: [
      ...(spec.subdomain ? [`${spec.subdomain}.${services}`] : []),
      services,
      `svc.${CLUSTER_DOMAIN}`,
      CLUSTER_DOMAIN,
    ],
  };
}

/**
 * Returns the backend of an interface. A guest has one pod network; further ones, which earlier versions allowed, are in
 * user mode, which is undefined.
 */
export function defineAttachment(
  { name, bridge, ports = [] }: Interface,
  network: Network,
  { networks, facts }: { readonly networks: readonly Network[]; readonly facts: NetworkFacts },
  field: string,
  problems: FieldError[],
): InterfaceBackend | undefined {
  if (network.multus !== undefined) {
    const config = facts.definitions.get(name);
    if (config === undefined) {
      const { networkName } = network.multus;
      problems.push(invalidValue('spec.networks', networkName, 'there is no NetworkAttachmentDefinition of this name'));
      return undefined;
    }
    const hash = createHash('sha256').update(name).digest('hex').slice(0, HASH_LENGTH);
    const attachment = { podInterface: `pod${hash}`, network: { type: 'cni', config }, binding: 'bridge' } as const;
    return { type: 'pod', tap: `tap${hash}`, attachment };
  }
  const { podNetwork } = facts;
  if (networks.find(({ multus }) => multus === undefined)?.name !== name || podNetwork === undefined) return undefined;
  const addresses = facts.addresses[name];
  const attachment: NetworkAttachment = {
    podInterface: POD_INTERFACE,
    network: podNetwork,
    binding: bridge === undefined ? 'masquerade' : 'bridge',
    ...(addresses !== undefined && { addresses }),
    ...(bridge === undefined && { guestAddresses: guestAddressesOf(network, addresses, problems) }),
    ...(ports.length > 0 && {
      ports: ports.map(({ protocol, port }) => ({ protocol: protocol === 'UDP' ? 'udp' : 'tcp', port }) as const),
    }),
  };
  if (podNetwork.type === 'default' && addresses === undefined) {
    problems.push(invalidValue(`${field}.name`, name, 'the pod has no address for this interface; restart the VM'));
  }
  return { type: 'pod', tap: POD_TAP, attachment };
}

/** Returns the private addresses of the guest, for the families that its pod has. */
function guestAddressesOf(
  { pod: { vmNetworkCIDR = DEFAULT_CIDR, vmIPv6NetworkCIDR = DEFAULT_CIDR_V6 } = {} }: Network,
  addresses: readonly string[] | undefined,
  problems: FieldError[],
): string[] {
  const families = addresses?.map((text) => parseInterfaceAddress(text).address.family);
  const networks = [
    parseCidr(vmNetworkCIDR || DEFAULT_CIDR, 4, 'vmNetworkCIDR', problems),
    parseCidr(vmIPv6NetworkCIDR || DEFAULT_CIDR_V6, 6, 'vmIPv6NetworkCIDR', problems),
  ];
  return networks.flatMap((network) => {
    if (network === undefined || families?.includes(network.address.family) === false) return [];
    return [`${formatIpAddress(addressAt(network, GUEST_INDEX))}/${network.prefix}`];
  });
}

function parseCidr(text: string, family: 4 | 6, field: string, problems: FieldError[]): IpNetwork | undefined {
  try {
    const network = parseIpNetwork(text);
    if (network.address.family === family) return network;
    problems.push(invalidValue(`spec.networks[].pod.${field}`, text, `is not an IPv${family} network`));
  } catch (error) {
    if (!(error instanceof IpAddressError)) throw error;
    problems.push(invalidValue(`spec.networks[].pod.${field}`, text, error.message));
  }
  return undefined;
}
