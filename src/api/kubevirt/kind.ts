import { smbios } from '#api/domain/chassis.ts';
import { conditionSchema } from '#api/custom-kinds/condition.ts';
import type { CustomKind } from '#api/custom-kinds/custom-kind.ts';
import { KUBEVIRT_GROUP } from '#api/names.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import { bool, int32, int64, list, overrideOptions, obj, oneOf, quantity, str, type Infer } from '#kube/schema-dsl.ts';

/** Reactions of a guest to the eviction of its pod; None shuts it down. */
export const EVICTION_STRATEGIES = ['None', 'LiveMigrate', 'LiveMigrateIfPossible', 'External'] as const;
export type EvictionStrategy = (typeof EVICTION_STRATEGIES)[number];

export const kubevirtSpec = obj({
  configuration: obj({
    machineType: str({
      description: 'Deprecated: use architectureConfiguration.amd64.machineType. Takes precedence if both are set.',
    }),
    emulatedMachines: list(str(), {
      description:
        'Deprecated: use architectureConfiguration.amd64.emulatedMachines. Takes precedence if both are set.',
    }),
    architectureConfiguration: obj({
      amd64: obj({
        machineType: str({ description: 'The machine type of VMs that name none. Defaults to q35.' }),
        emulatedMachines: list(str(), {
          description: 'Globs of the machine types that VMs may use. Defaults to q35* and pc-q35*.',
        }),
      }),
    }),
    evictionStrategy: oneOf(EVICTION_STRATEGIES, { description: 'The eviction strategy of VMs that set none.' }),
    migrations: obj({
      parallelMigrationsPerCluster: int32({ minimum: 1, description: 'Defaults to 5.' }),
      parallelOutboundMigrationsPerNode: int32({ minimum: 1, description: 'Defaults to 2.' }),
      bandwidthPerMigration: quantity({ description: 'Bytes per second. Defaults to 0, which means unlimited.' }),
      completionTimeoutPerGiB: int64({ minimum: 1, description: 'Timeout in seconds for each GiB. Defaults to 150.' }),
      progressTimeout: int64({ minimum: 1, description: 'Timeout in seconds without progress. Defaults to 150.' }),
      allowAutoConverge: bool({
        description: 'Slows the guest down if it changes memory faster than it can be copied. Defaults to false.',
      }),
    }),
    developerConfiguration: obj({
      memoryOvercommit: int32({
        minimum: 100,
        maximum: 1000,
        description:
          'Memory of guests in percent of the memory that the scheduler reserves for them. Defaults to 100: all of it.',
      }),
    }),
    smbios: overrideOptions(smbios, {
      description: 'SMBIOS strings of new VMs; a VM keeps those it was created with. Defaults to those of QEMU.',
    }),
    vmStateStorageClass: str({
      description:
        'The StorageClass for the persistent state of VMs (TPM, EFI variables). Defaults to the default class.',
    }),
    directLuns: list(str({ minLength: 1, maxLength: 128 }), {
      maxItems: 256,
      description:
        'Globs of the guids and uuids of block devices of nodes that VMs may use as directLun. Defaults to none.',
    }),
    specialManagedDevices: list(obj({ type: str(), device: str() }, { required: ['type', 'device'] }), {
      maxItems: 64,
      description: 'Devices that are managed although no spec asks for them: they are kept if a guest has them.',
    }),
  }),
});

const kubevirtStatus = obj({
  phase: oneOf(['Deploying', 'Deployed', 'Deleting', 'Error']),
  conditions: list(conditionSchema),
  operatorVersion: str(),
  observedKubeVirtVersion: str(),
  targetKubeVirtVersion: str(),
});

export interface KubeVirt extends KubeObject {
  spec?: Infer<typeof kubevirtSpec>;
  status?: Infer<typeof kubevirtStatus>;
}

export const KUBEVIRTS: ResourceType<KubeVirt> = {
  group: KUBEVIRT_GROUP,
  version: 'v1',
  kind: 'KubeVirt',
  plural: 'kubevirts',
  namespaced: true,
};

export const kubevirt: CustomKind<KubeVirt> = {
  type: KUBEVIRTS,
  singular: 'kubevirt',
  shortNames: ['kv', 'kvs'],
  categories: ['all'],
  description: 'The settings for all VMs. There is one such object; its status shows the state of the installation.',
  spec: kubevirtSpec,
  specRequired: false,
  status: kubevirtStatus,
  columns: [
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
  ],
};
