/** The manifest of a new VM, and of the claims that come with it. Pure. */
import { RUN_STRATEGIES } from '#api/virtual-machine/schema.ts';
import { CLOUD_INIT_DISK, cloudInitVolume, type CloudInitWish } from '#cli/create/cloud-init.ts';
import { newVolumes, type VolumeWishes } from '#cli/create/new-volumes.ts';
import { flagFault } from '#cli/create/parameters.ts';
import { nameErrors } from '#kube/names.ts';
import { quantityFault } from '#kube/quantity.ts';

export interface NewVmWish {
  readonly name: string;
  readonly runStrategy: string;
  readonly memory: string;
  readonly terminationGracePeriod: number;
  readonly volumes: VolumeWishes;
  readonly cloudInit: CloudInitWish;
}

export interface NewVm {
  /** Claims first. */
  readonly objects: readonly object[];
  readonly notes: readonly string[];
}

/** Throws CommandError. */
export function newVm(wish: NewVmWish): NewVm {
  const { name, runStrategy, memory, terminationGracePeriod } = wish;
  const [fault] = nameErrors('subdomain', name);
  if (fault !== undefined) throw flagFault('name', fault);
  if (!RUN_STRATEGIES.some((one) => one === runStrategy)) {
    const known = RUN_STRATEGIES.join(', ');
    throw flagFault('run-strategy', `invalid RunStrategy "${runStrategy}", supported values are: ${known}`);
  }
  const memoryFault = quantityFault(memory);
  if (memoryFault !== undefined) throw flagFault('memory', memoryFault);
  if (terminationGracePeriod < 0) throw flagFault('termination-grace-period', 'it must not be negative');

  const added = newVolumes(name, wish.volumes);
  const cloudInit = cloudInitVolume(wish.cloudInit);
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
          domain: { devices: disks.length === 0 ? {} : { disks }, memory: { guest: memory } },
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
