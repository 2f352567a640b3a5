/** Builds the manifest of a new VM and of its claims. Pure. */
import { RUN_STRATEGIES } from '#api/virtual-machine/schema.ts';
import { CLOUD_INIT_DISK, buildCloudInitVolume, type CloudInitOptions } from '#cli/commands/create/cloud-init.ts';
import { buildNewVolumes, type VolumeOptions } from '#cli/commands/create/new-volumes.ts';
import { flagError } from '#cli/commands/create/parameters.ts';
import { nameErrors } from '#kube/names.ts';
import { findQuantityError } from '#kube/quantity.ts';

export interface NewVmOptions {
  readonly name: string;
  readonly runStrategy: string;
  readonly memory: string;
  readonly terminationGracePeriod: number;
  readonly firmware: 'bios' | 'efi' | 'secure-boot';
  readonly tpm: boolean;
  readonly volumes: VolumeOptions;
  readonly cloudInit: CloudInitOptions;
}

interface NewVm {
  /** The claims, then the VM. */
  readonly objects: readonly object[];
  readonly notes: readonly string[];
}

/** Throws CommandError. */
export function buildVmManifest(options: NewVmOptions): NewVm {
  const { name, runStrategy, memory, terminationGracePeriod } = options;
  const [nameError] = nameErrors('subdomain', name);
  if (nameError !== undefined) throw flagError('name', nameError);
  if (!RUN_STRATEGIES.some((one) => one === runStrategy)) {
    const known = RUN_STRATEGIES.join(', ');
    throw flagError('run-strategy', `invalid RunStrategy "${runStrategy}", supported values are: ${known}`);
  }
  const memoryError = findQuantityError(memory);
  if (memoryError !== undefined) throw flagError('memory', memoryError);
  if (terminationGracePeriod < 0) throw flagError('termination-grace-period', 'it must not be negative');

  const added = buildNewVolumes(name, options.volumes);
  const cloudInit = buildCloudInitVolume(options.cloudInit);
  const disks = [
    ...added.map(({ volume, disk, bootOrder }) => ({ name: volume.name, ...disk, ...(bootOrder && { bootOrder }) })),
    ...(cloudInit === undefined ? [] : [{ name: CLOUD_INIT_DISK, disk: { bus: 'virtio' } }]),
  ];
  const volumes = [...added.map(({ volume }) => volume), ...(cloudInit === undefined ? [] : [cloudInit])];
  const vm = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name },
    spec: {
      runStrategy,
      template: {
        spec: {
          domain: {
            devices: { ...(disks.length > 0 && { disks }), ...(options.tpm && { tpm: { persistent: true } }) },
            memory: { guest: memory },
            ...firmwareOf(options.firmware),
          },
          terminationGracePeriodSeconds: terminationGracePeriod,
          ...(volumes.length > 0 && { volumes }),
        },
      },
    },
  };
  const notes = added.flatMap(({ note }) => (note === undefined ? [] : [note]));
  return {
    objects: [...added.flatMap(({ claim }) => (claim === undefined ? [] : [claim])), vm],
    notes: [...new Set(notes)],
  };
}

/** Returns the firmware part of a domain. Variables of UEFI persist: a VM keeps its boot entries and keys. */
function firmwareOf(firmware: NewVmOptions['firmware']): object {
  if (firmware === 'bios') return {};
  const secureBoot = firmware === 'secure-boot';
  return {
    firmware: { bootloader: { efi: { secureBoot, persistent: true } } },
    // Secure Boot protects its variables with System Management Mode.
    ...(secureBoot && { features: { smm: { enabled: true } } }),
  };
}
