/**
 * The default network of guests (`network: pod`). There is one object, named `default`; without it, nodes use the CNI
 * configuration of their host, if it has one. The first address of each subnet is the gateway, the same on all nodes.
 *
 *   spec     written by the plane when it starts for the first time, or by administrators; subnets never change
 */
import type { CustomKind } from '#api/custom-kinds/custom-kind.ts';
import { NETWORK_GROUP } from '#api/names.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import { int32, list, obj, str, type Infer } from '#kube/schema-dsl.ts';

export const DEFAULT_NETWORK = 'default';
/** Fits into packets between hosts, with the header of VXLAN. */
export const DEFAULT_MTU = 1450;

const guestNetworkSpec = obj(
  {
    subnets: list(str(), {
      minItems: 1,
      maxItems: 2,
      description: 'The networks of the guests: one of IPv4, one of IPv6, or both. For example 10.244.0.0/16.',
    }),
    mtu: int32({ minimum: 1280, maximum: 65_535, description: `The largest packet. Defaults to ${DEFAULT_MTU}.` }),
  },
  { required: ['subnets'] },
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
  columns: [
    { name: 'Subnets', type: 'string', jsonPath: '.spec.subnets' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
};
