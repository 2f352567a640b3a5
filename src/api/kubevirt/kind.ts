import { smbios } from '#api/domain/chassis.ts';
import { condition } from '#api/condition.ts';
import type { CustomKind } from '#api/custom-kind.ts';
import { KUBEVIRT_GROUP } from '#api/names.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import { bool, int32, int64, list, noted, obj, oneOf, quantity, str, type Infer } from '#kube/schema-dsl.ts';

/** What becomes of a guest whose pod is evicted; None shuts it down. */
export const EVICTION_STRATEGIES = ['None', 'LiveMigrate', 'LiveMigrateIfPossible', 'External'] as const;
export type EvictionStrategy = (typeof EVICTION_STRATEGIES)[number];

export const kubevirtSpec = obj({
  configuration: obj({
    machineType: str({
      description: 'Deprecated: architectureConfiguration.amd64.machineType; wins where both are set.',
    }),
    emulatedMachines: list(str(), {
      description: 'Deprecated: architectureConfiguration.amd64.emulatedMachines; wins where both are set.',
    }),
    architectureConfiguration: obj({
      amd64: obj({
        machineType: str({ description: 'For VMs that name none; q35 unless set.' }),
        emulatedMachines: list(str(), {
          description: 'Globs of the machine types that VMs may have; q35* and pc-q35* unless set.',
        }),
      }),
    }),
    evictionStrategy: oneOf(EVICTION_STRATEGIES),
    migrations: obj({
      parallelMigrationsPerCluster: int32({ minimum: 1, description: '5 unless set.' }),
      parallelOutboundMigrationsPerNode: int32({ minimum: 1, description: '2 unless set.' }),
      bandwidthPerMigration: quantity({ description: 'Bytes per second; unlimited (0) unless set.' }),
      completionTimeoutPerGiB: int64({ minimum: 1, description: 'Seconds; 150 unless set.' }),
      progressTimeout: int64({ minimum: 1, description: 'Seconds; 150 unless set.' }),
      allowAutoConverge: bool({ description: 'false unless set.' }),
    }),
    smbios: noted(smbios, {
      description: 'What new VMs say of their maker; a VM keeps what it was made with. What QEMU says unless set.',
    }),
    vmStateStorageClass: str({
      description: 'The StorageClass for the persistent state of VMs (TPM, EFI variables); a default class unless set.',
    }),
    directLuns: list(str({ minLength: 1, maxLength: 128 }), {
      maxItems: 256,
      description:
        'Globs of the guids and uuids of block devices of nodes that VMs may name as directLun; none unless set.',
    }),
    specialManagedDevices: list(obj({ type: str(), device: str() }, { required: ['type', 'device'] }), {
      maxItems: 64,
      description: 'Devices that count as managed although nobody asked for them: what is found of them is kept.',
    }),
  }),
});

export const kubevirtStatus = obj({
  phase: oneOf(['Deploying', 'Deployed', 'Deleting', 'Error']),
  conditions: list(condition),
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
  description: 'How VMs are run here. There is one, and the operator tells in its status how the installation is.',
  spec: kubevirtSpec,
  specRequired: false,
  status: kubevirtStatus,
  columns: [
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
  ],
};
