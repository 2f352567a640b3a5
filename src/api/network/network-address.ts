/**
 * One address of the default network, which belongs to one interface of one VM. The name of the object is the address
 * (networkAddressName), so the API server itself ensures that no address is given twice.
 *
 *   spec     written by controllers/network-address; only the uid of the owner can change, if a VM replaces one of the same name
 *
 * The address stays with the VM, whether it runs or not, until the VM is deleted or asks for another one. Instances
 * without a VM own their address themselves.
 */
import type { CustomKind } from '#api/custom-kinds/custom-kind.ts';
import { NETWORK_GROUP } from '#api/names.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import { obj, oneOf, str, type Infer } from '#kube/schema-dsl.ts';
import type { IpAddress } from '#lib/ip-address.ts';

const networkAddressSpec = obj(
  {
    address: str({ description: 'The address, for example 10.244.0.5.' }),
    network: str({ description: 'The GuestNetwork of the address.' }),
    subnet: str({ description: 'The subnet of the address, for example 10.244.0.0/16.' }),
    interface: str({ description: 'The interface of the VM that has the address.' }),
    owner: obj(
      {
        kind: oneOf(['VirtualMachine', 'VirtualMachineInstance']),
        namespace: str(),
        name: str(),
        uid: str(),
      },
      { required: ['kind', 'namespace', 'name', 'uid'], description: 'The VM, or an instance without a VM.' },
    ),
  },
  {
    required: ['address', 'network', 'subnet', 'interface', 'owner'],
    description: 'The address and its owner. Written by Selfsame only.',
  },
);

export interface NetworkAddress extends KubeObject {
  spec: Infer<typeof networkAddressSpec>;
}

export const NETWORK_ADDRESSES: ResourceType<NetworkAddress> = {
  group: NETWORK_GROUP,
  version: 'v1',
  kind: 'NetworkAddress',
  plural: 'networkaddresses',
  namespaced: false,
};

export const networkAddress: CustomKind<NetworkAddress> = {
  type: NETWORK_ADDRESSES,
  singular: 'networkaddress',
  shortNames: ['netaddr'],
  description: 'An address of a guest network that belongs to an interface of a VM.',
  spec: networkAddressSpec,
  columns: [
    { name: 'Address', type: 'string', jsonPath: '.spec.address' },
    { name: 'Namespace', type: 'string', jsonPath: '.spec.owner.namespace' },
    { name: 'Owner', type: 'string', jsonPath: '.spec.owner.name' },
    { name: 'Interface', type: 'string', jsonPath: '.spec.interface' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
};

export type AddressOwner = NetworkAddress['spec']['owner'];

/** Returns the name of the object of an address: 10.244.0.5, or fd00-0000-0000-0000-0000-0000-0000-0005. */
export function networkAddressName({ family, value }: IpAddress): string {
  if (family === 4) return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 0xffn).join('.');
  return value.toString(16).padStart(32, '0').match(/.{4}/g)?.join('-') ?? '';
}
