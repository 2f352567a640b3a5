/**
 * The identity record of a VM: same name and namespace, owned by the VM. Every later start is built from it.
 *
 *   spec     firmware, MACs and IP addresses; written by controllers/vm before each start
 *   status   the resolved machine type, every device with its address, the claim of persistent state, and the history of
 *            these and of the spec; written by controllers/device-map
 */
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { smbios } from '#api/domain/chassis.ts';
import type { CustomKind } from '#api/custom-kinds/custom-kind.ts';
import { learnedDevice } from '#api/devices/learned-device.ts';
import { IDENTITY_GROUP } from '#api/names.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import { anything, bool, int64, list, overrideOptions, obj, str, time, type Infer } from '#kube/schema-dsl.ts';

/** Maximum number of history entries; identity-history.ts also bounds their size. */
export const MAX_HISTORY = 50;
export const MAX_FREED = 64;

const identitySpec = obj({
  firmware: obj({ uuid: str(), serial: str() }),
  smbios: overrideOptions(smbios, {
    description: 'SMBIOS strings of the VM, copied from the KubeVirt object at the first start.',
  }),
  interfaces: list(
    obj(
      {
        name: str(),
        macAddress: str(),
        fromTemplate: bool({
          description: 'True if the address comes from the template of the VM; absent if it was derived.',
        }),
        addresses: list(str(), {
          description: 'The IP addresses on the default network (NetworkAddress); absent if it has none.',
        }),
      },
      { required: ['name', 'macAddress'] },
    ),
    { description: 'The MAC addresses of all interfaces, and their IP addresses on the default network.' },
  ),
});

const identityChange = obj(
  {
    field: str({
      description:
        'The changed field: firmware.uuid, interfaces.<name>.macAddress, interfaces.<name>.addresses, machine.type, ' +
        'stateClaim, devices.<id> for a device that was added or removed, devices.<id>.address for a part of one ...',
    }),
    from: anything({ description: 'The value before the change; absent if there was none.' }),
    to: anything({ description: 'The value after the change; absent if there is none.' }),
  },
  { required: ['field'] },
);

const historyEntry = obj({
  at: time(),
  what: str({ description: 'The changes as text.' }),
  cause: str({
    description:
      'The cause of the changes, such as an edit, a start, a restore, an import or a migration, with the name of its object.',
  }),
  by: str({ description: 'The user who requested the change, if admission saw the request.' }),
  instance: str({ description: 'The uid of the instance whose start caused the changes.' }),
  changes: list(identityChange, {
    description:
      'All changes of the record. Applied in order, the entries lead from one state of the record to the next.',
  }),
});

const identityStatus = obj({
  machine: obj({ type: str({ description: 'The canonical machine type of the last start.' }) }),
  devices: list(learnedDevice, {
    description: 'All devices of the VM. The next start gives them the same addresses.',
  }),
  freed: list(learnedDevice, {
    maxItems: MAX_FREED,
    description: 'Removed disks and interfaces. Their addresses are reused only if no others are free.',
  }),
  deviceHash: str({ description: 'The device hash of the reading from which the devices were learned.' }),
  deviceRevision: int64({
    description: 'The revision of that reading. Older readings of the same instance are ignored.',
  }),
  instance: str({ description: 'The uid of the instance from which the devices were learned.' }),
  learnedAt: time(),
  stateClaim: str({
    description: 'The claim with the TPM and EFI state of the last run, or the one that a restore created.',
  }),
  recorded: overrideOptions(identitySpec, {
    description: 'The spec that the history covers. If the spec differs, an entry is about to be written.',
  }),
  history: list(historyEntry, {
    maxItems: MAX_HISTORY,
    description: 'All changes of the record, newest last. The oldest entries are dropped first.',
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
  description:
    'The identity record of a VM: firmware, MAC addresses and device addresses, from which every later start is built.',
  nodes: { companion: VIRTUAL_MACHINE_INSTANCES },
  spec: identitySpec,
  status: identityStatus,
  columns: [
    { name: 'UUID', type: 'string', jsonPath: '.spec.firmware.uuid' },
    { name: 'Machine', type: 'string', jsonPath: '.status.machine.type' },
    { name: 'Learned', type: 'date', jsonPath: '.status.learnedAt' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
};
