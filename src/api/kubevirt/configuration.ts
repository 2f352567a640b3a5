/** The settings of the KubeVirt object, with defaults applied. */
import type { Smbios } from '#api/domain/chassis.ts';
import type { EvictionStrategy, KubeVirt } from '#api/kubevirt/kind.ts';
import type { MigrationConfiguration } from '#api/migration/migration-state.ts';

export interface Configuration {
  /** Machine type of VMs that name none. */
  readonly defaultMachineType: string;
  /** Globs of machine types that VMs may have. */
  readonly emulatedMachines: readonly string[];
  /** Globs of guids and uuids of block devices that VMs may use. */
  readonly directLuns: readonly string[];
  /** Devices that are managed although no spec asks for them. */
  readonly specialManagedDevices: readonly { readonly type: string; readonly device: string }[];
  /** StorageClass of persistent state; undefined: the default class. */
  readonly vmStateStorageClass: string | undefined;
  /** Guest memory in percent of the memory that the scheduler reserves for it. */
  readonly memoryOvercommit: number;
  /** SMBIOS strings of guests; undefined: those of the hypervisor. */
  readonly smbios: Smbios | undefined;
  /** Strategy of VMs that set none. */
  readonly evictionStrategy: EvictionStrategy;
  readonly migrations: Required<MigrationConfiguration> & {
    readonly parallelMigrationsPerCluster: number;
    readonly parallelOutboundMigrationsPerNode: number;
  };
}

const MIGRATION_DEFAULTS: Configuration['migrations'] = {
  parallelMigrationsPerCluster: 5,
  parallelOutboundMigrationsPerNode: 2,
  bandwidthPerMigration: '0',
  completionTimeoutPerGiB: 150,
  progressTimeout: 150,
  allowAutoConverge: false,
};

export function configurationOf(kubevirt: Pick<KubeVirt, 'spec'> | undefined): Configuration {
  const {
    machineType,
    emulatedMachines,
    architectureConfiguration,
    directLuns,
    specialManagedDevices,
    vmStateStorageClass,
    smbios,
    evictionStrategy,
    migrations,
    developerConfiguration,
  } = kubevirt?.spec?.configuration ?? {};
  const amd64 = architectureConfiguration?.amd64;
  return {
    defaultMachineType: machineType || amd64?.machineType || 'q35',
    emulatedMachines: emulatedMachines ?? amd64?.emulatedMachines ?? ['q35*', 'pc-q35*'],
    directLuns: directLuns ?? [],
    specialManagedDevices: specialManagedDevices ?? [],
    vmStateStorageClass: vmStateStorageClass || undefined,
    memoryOvercommit: developerConfiguration?.memoryOvercommit ?? 100,
    smbios,
    evictionStrategy: evictionStrategy ?? 'None',
    migrations: { ...MIGRATION_DEFAULTS, ...migrations },
  };
}
