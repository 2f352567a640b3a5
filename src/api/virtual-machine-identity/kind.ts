/**
 * The identity record of a VM: same name and namespace, owned by it. What makes it the selfsame machine at the next start.
 *
 *   spec     who it is: firmware and MACs; written by controllers/vm before the first start
 *   status   how it ran: the resolved machine type and every device with its address; written by controllers/device-map
 */
import { smbios } from '#api/domain/chassis.ts';
import type { CustomKind } from '#api/custom-kind.ts';
import { learnedDevice } from '#api/learned-device.ts';
import { IDENTITY_GROUP } from '#api/names.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import { int64, list, noted, obj, str, time, type Infer } from '#kube/schema-dsl.ts';

export const MAX_HISTORY = 50;
export const MAX_FREED = 64;

export const identitySpec = obj({
  firmware: obj({ uuid: str(), serial: str() }),
  smbios: noted(smbios, {
    description: 'What it says of its maker: as the KubeVirt object had it at its first start.',
  }),
  interfaces: list(obj({ name: str(), macAddress: str() }, { required: ['name', 'macAddress'] }), {
    description: 'MAC addresses that were made for interfaces that name none.',
  }),
});

export const identityStatus = obj({
  machine: obj({ type: str({ description: 'The canonical machine type of the last start.' }) }),
  devices: list(learnedDevice, {
    description: 'Every device of the VM; the next start puts them at the same addresses.',
  }),
  freed: list(learnedDevice, {
    maxItems: MAX_FREED,
    description: 'Disks and interfaces that are gone: nobody else gets their addresses while others are free.',
  }),
  deviceHash: str({ description: 'What the node said of the devices when they were read; written with them.' }),
  deviceRevision: int64({ description: 'Of that reading; an older one of the same instance changes nothing.' }),
  instance: str({ description: 'The uid of the instance from which it was learned.' }),
  learnedAt: time(),
  history: list(obj({ at: time(), what: str(), cause: str() }), {
    maxItems: MAX_HISTORY,
    description: 'What changed, newest last.',
  }),
});

export type IdentitySpec = Infer<typeof identitySpec>;
export type IdentityStatus = Infer<typeof identityStatus>;

export interface VirtualMachineIdentity extends KubeObject {
  spec: IdentitySpec;
  status?: IdentityStatus;
}

export const VIRTUAL_MACHINE_IDENTITIES: ResourceType<VirtualMachineIdentity> = {
  group: IDENTITY_GROUP,
  version: 'v1',
  kind: 'VirtualMachineIdentity',
  plural: 'virtualmachineidentities',
  namespaced: true,
};

export const virtualMachineIdentity: CustomKind<VirtualMachineIdentity> = {
  type: VIRTUAL_MACHINE_IDENTITIES,
  singular: 'virtualmachineidentity',
  shortNames: ['vmid', 'vmids'],
  description: 'What makes a VM the selfsame machine at its next start.',
  spec: identitySpec,
  status: identityStatus,
  columns: [
    { name: 'UUID', type: 'string', jsonPath: '.spec.firmware.uuid' },
    { name: 'Machine', type: 'string', jsonPath: '.status.machine.type' },
    { name: 'Learned', type: 'date', jsonPath: '.status.learnedAt' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
};
