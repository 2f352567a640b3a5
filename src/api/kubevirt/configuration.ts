/** The settings that the KubeVirt object holds, with their defaults filled in. */
import type { Smbios } from '#api/domain/chassis.ts';
import type { EvictionStrategy, KubeVirt } from '#api/kubevirt/kind.ts';
import type { MigrationConfiguration } from '#api/migration-state.ts';

export interface Configuration {
  /** For VMs that name no machine type. */
  readonly defaultMachineType: string;
  /** Globs of machine types that VMs may have. */
  readonly emulatedMachines: readonly string[];
  /** Globs of guids and uuids of block devices that VMs may name. */
  readonly directLuns: readonly string[];
  /** Devices that count as managed although no spec asks for them. */
  readonly specialManagedDevices: readonly { readonly type: string; readonly device: string }[];
  /** Where the persistent state of VMs lies; undefined: in a default class. */
  readonly vmStateStorageClass: string | undefined;
  /** What guests say of their maker; undefined: what the hypervisor says. */
  readonly smbios: Smbios | undefined;
  /** Of VMs that say nothing themselves. */
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
  } = kubevirt?.spec?.configuration ?? {};
  const amd64 = architectureConfiguration?.amd64;
  return {
    defaultMachineType: machineType || amd64?.machineType || 'q35',
    emulatedMachines: emulatedMachines ?? amd64?.emulatedMachines ?? ['q35*', 'pc-q35*'],
    directLuns: directLuns ?? [],
    specialManagedDevices: specialManagedDevices ?? [],
    vmStateStorageClass: vmStateStorageClass || undefined,
    smbios,
    evictionStrategy: evictionStrategy ?? 'None',
    migrations: { ...MIGRATION_DEFAULTS, ...migrations },
  };
}
