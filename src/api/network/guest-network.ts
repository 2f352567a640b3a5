/**
 * The default network of guests (`network: pod`). There is one object, named `default`; without it, nodes use the CNI
 * configuration of their host, if it has one. The first address of each subnet is the gateway, the same on all nodes.
 *
 *   spec     written by the plane when it starts for the first time, or by administrators; subnets never change
 */
import type { CustomKind } from '#api/custom-kinds/custom-kind.ts';
import { describePrefixRange, PREFIX_RANGES, UNUSABLE_NETWORKS } from '#api/network/guest-subnets.ts';
import { NETWORK_GROUP } from '#api/names.ts';
import { apiVersionOf, type KubeObject, type ResourceType } from '#kube/meta.ts';
import { int32, list, obj, str, type Infer } from '#kube/schema-dsl.ts';
import type { ValidationRule } from '#kube/schema.ts';

export const DEFAULT_NETWORK = 'default';
/** Fits into packets between hosts, with the header of VXLAN. */
export const DEFAULT_MTU = 1450;

/** The longest text of a subnet. Bounds the cost of the rules. */
const SUBNET_LENGTH = 49;

/** The rules of api/network/guest-subnets.ts in CEL, so that the API server itself refuses what they refuse. */
const subnetRules: readonly ValidationRule[] = [
  {
    rule: 'self.all(s, isCIDR(s) && cidr(s) == cidr(s).masked())',
    message: 'must be networks without bits after their prefix, such as 10.244.0.0/16 or fd00:10:244::/64',
  },
  {
    rule: `self.all(s, !isCIDR(s) || (cidr(s).ip().family() == 4 ? ${isBetween(4)} : ${isBetween(6)}))`,
    message: `must have ${describePrefixRange(4)} for IPv4 and ${describePrefixRange(6)} for IPv6`,
  },
  {
    rule: `self.all(s, !isCIDR(s) || [${UNUSABLE_NETWORKS.map((text) => `'${text}'`).join(', ')}].all(r, !cidr(r).containsCIDR(s)))`,
    message: 'must not be loopback, link-local, multicast or otherwise reserved networks',
  },
  {
    rule: 'self.size() < 2 || self.filter(s, isCIDR(s) && cidr(s).ip().family() == 4).size() == 1',
    message: 'must have at most one IPv4 network and at most one IPv6 network',
  },
  {
    rule: 'self == oldSelf',
    message: 'cannot be changed: guests have addresses in these networks',
  },
];

function isBetween(family: 4 | 6): string {
  const { shortest, longest } = PREFIX_RANGES[family];
  return `cidr(s).prefixLength() >= ${shortest} && cidr(s).prefixLength() <= ${longest}`;
}

const guestNetworkSpec = obj(
  {
    subnets: list(str({ maxLength: SUBNET_LENGTH }), {
      minItems: 1,
      maxItems: 2,
      description:
        'The networks of the guests: one of IPv4, one of IPv6, or both. For example 10.244.0.0/16. Cannot be changed.',
      rules: subnetRules,
    }),
    mtu: int32({ minimum: 1280, maximum: 65_535, description: `The largest packet. Defaults to ${DEFAULT_MTU}.` }),
  },
  { required: ['subnets'], description: 'The subnets from which guests get addresses, and the size of packets.' },
);

export interface GuestNetwork extends KubeObject {
  spec: Infer<typeof guestNetworkSpec>;
}

export const GUEST_NETWORKS: ResourceType<GuestNetwork> = {
  group: NETWORK_GROUP,
  version: 'v1',
  kind: 'GuestNetwork',
  plural: 'guestnetworks',
  namespaced: false,
};

export const guestNetwork: CustomKind<GuestNetwork> = {
  type: GUEST_NETWORKS,
  singular: 'guestnetwork',
  shortNames: [],
  description: 'A network that connects guests with each other and with the outside.',
  spec: guestNetworkSpec,
  rules: [
    {
      rule: `self.metadata.name == '${DEFAULT_NETWORK}'`,
      message: `metadata.name: the only GuestNetwork is "${DEFAULT_NETWORK}"`,
    },
  ],
  columns: [
    { name: 'Subnets', type: 'string', jsonPath: '.spec.subnets' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
};

/** Builds the GuestNetwork `default`. */
export function buildGuestNetwork(subnets: readonly string[]): GuestNetwork {
  return {
    apiVersion: apiVersionOf(GUEST_NETWORKS),
    kind: GUEST_NETWORKS.kind,
    metadata: { name: DEFAULT_NETWORK },
    spec: { subnets: [...subnets] },
  };
}
