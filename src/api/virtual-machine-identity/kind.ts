/**
 * The identity record of a VM: same name and namespace, owned by it. What makes it the selfsame machine at the next start.
 *
 *   spec     who it is: firmware and MACs; written by controllers/vm before each start
 *   status   how it ran: the resolved machine type, every device with its address, the claim of its state, and the history
 *            of all of this and of the spec; written by controllers/device-map
 */
import { smbios } from '#api/domain/chassis.ts';
import type { CustomKind } from '#api/custom-kind.ts';
import { learnedDevice } from '#api/learned-device.ts';
import { IDENTITY_GROUP } from '#api/names.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import { anything, bool, int64, list, noted, obj, str, time, type Infer } from '#kube/schema-dsl.ts';

/** The number of entries that a history keeps; identity-history.ts also bounds their size. */
export const MAX_HISTORY = 50;
export const MAX_FREED = 64;

export const identitySpec = obj({
  firmware: obj({ uuid: str(), serial: str() }),
  smbios: noted(smbios, {
    description: 'What it says of its maker: as the KubeVirt object had it at its first start.',
  }),
  interfaces: list(
    obj(
      {
        name: str(),
        macAddress: str(),
        fromTemplate: bool({
          description: 'True where the template of the VM names the address; absent where it was made.',
        }),
      },
      { required: ['name', 'macAddress'] },
    ),
    { description: 'The MAC addresses of all interfaces.' },
  ),
});

export const identityChange = obj(
  {
    field: str({
      description:
        'What changed: firmware.uuid, interfaces.<name>.macAddress, machine.type, stateClaim, devices.<id> for a device ' +
        'that came or went, devices.<id>.address for a part of one ...',
    }),
    from: anything({ description: 'The value before; absent where there was none.' }),
    to: anything({ description: 'The value after; absent where there is none.' }),
  },
  { required: ['field'] },
);

export const historyEntry = obj({
  at: time(),
  what: str({ description: 'The changes as text.' }),
  cause: str({
    description: 'An edit, a start, a restore, an import, a migration ... and the object that stands for it.',
  }),
  by: str({ description: 'The user who asked for it, where admission saw the request.' }),
  instance: str({ description: 'The uid of the instance whose start brought the changes.' }),
  changes: list(identityChange, {
    description:
      'Every change of the record. Applied in order, the entries lead from one state of the record to the next.',
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
  stateClaim: str({
    description: 'The claim that held TPM and EFI state when the guest last ran, or that a restore made for it.',
  }),
  recorded: noted(identitySpec, {
    description: 'The spec that the history accounts for. Where the spec differs, an entry is about to be written.',
  }),
  history: list(historyEntry, {
    maxItems: MAX_HISTORY,
    description: 'Every change of the record, newest last. The oldest entries are dropped first.',
  }),
});

export type IdentitySpec = Infer<typeof identitySpec>;
export type IdentityStatus = Infer<typeof identityStatus>;
export type IdentityChange = Infer<typeof identityChange>;
export type HistoryEntry = Infer<typeof historyEntry>;

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
