/** Whether the running instance stays another than the one that a start would make now, whatever is plugged. Pure. */
import { isFinal } from '#api/can.ts';
import { isMovable, isPlugged } from '#api/disk-bus.ts';
import { vmiSpec, type VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { VM_GENERATION_ANNOTATION } from '#controllers/vm/build-vmi.ts';
import { type DeviceSteps, deviceSteps } from '#controllers/vm/hotplug.ts';
import { asHardware as nicAsHardware } from '#controllers/vm/hotplug-interfaces.ts';
import { asHardware as diskAsHardware } from '#controllers/vm/hotplug-volumes.ts';
import { meant } from '#controllers/vm/meaning.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { deepEqual } from '#kube/deep.ts';
import { isDeleting } from '#kube/meta.ts';

export function restartRequired(world: VmWorld): boolean {
  const { vmi } = world;
  if (vmi === undefined || isDeleting(vmi) || isFinal(vmi)) return false;
  const steps = deviceSteps(world, vmi);
  const { next, volumes, interfaces } = steps;
  if (!deepEqual(bootDisks(next), bootDisks(pluggedIn(vmi.spec, steps)))) return true;
  const live = { volumes: volumes.live, interfaces: interfaces.live };
  return !deepEqual(comparable(next, live), comparable(vmi.spec, live));
}

/** Names of what comes and goes while the guest runs, and is not compared. */
interface Live {
  readonly volumes: ReadonlySet<string>;
  readonly interfaces: ReadonlySet<string>;
}

/**
 * Grace and start are not of the machine, but of how it starts and stops; changed on an instance by the subresources.
 * Everything else is compared by what it means. The order of devices means nothing: their addresses are their own.
 */
function comparable(spec: VmiSpec, live: Live): unknown {
  const { terminationGracePeriodSeconds: _grace, startStrategy: _start, ...machine } = spec;
  const { devices } = machine.domain;
  const changed = {
    ...devices,
    disks: byName(devices?.disks?.map(diskAsHardware), live.volumes),
    interfaces: byName(devices?.interfaces?.map(nicAsHardware), live.interfaces),
  };
  const isEmpty = Object.values(changed).every((value) => value === undefined);
  return meant(vmiSpec, {
    ...machine,
    domain: { ...machine.domain, devices: isEmpty ? undefined : changed },
    volumes: byName(machine.volumes, live.volumes),
    networks: byName(machine.networks, live.interfaces),
  });
}

function byName<T extends { readonly name: string }>(
  list: readonly T[] | undefined,
  except: ReadonlySet<string>,
): T[] | undefined {
  const compared = (list ?? []).filter(({ name }) => !except.has(name));
  return compared.length === 0 ? undefined : compared.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** The instance with its disks as they are when all that can come and go has, but for what it has for this run only. */
function pluggedIn(spec: VmiSpec, { next, volumes, ephemeral, persisted }: DeviceSteps): VmiSpec {
  const { devices } = spec.domain;
  const going = new Set(volumes.unplug.map(({ name }) => name));
  for (const name of ephemeral) if (!persisted.includes(name)) going.add(name);
  const stays = new Set((devices?.disks ?? []).flatMap(({ name }) => (going.has(name) ? [] : [name])));
  const comes = ({ name }: { readonly name: string }): boolean => volumes.live.has(name) && !stays.has(name);
  const isThere = ({ name }: { readonly name: string }): boolean => stays.has(name);
  const disks = [...(devices?.disks ?? []).filter(isThere), ...(next.domain.devices?.disks ?? []).filter(comes)];
  const contents = [...(spec.volumes ?? []).filter(isThere), ...(next.volumes ?? []).filter(comes)];
  return { ...spec, domain: { ...spec.domain, devices: { ...devices, disks } }, volumes: contents };
}

/**
 * Where nothing names a boot order, disks boot in the order in which they stand: the first of all, and those that stay
 * while the guest runs. Undefined where the order means nothing.
 */
function bootDisks({ domain, volumes = [] }: VmiSpec): string[] | undefined {
  const { disks = [], interfaces = [] } = domain.devices ?? {};
  if ([...disks, ...interfaces].some(({ bootOrder }) => bootOrder !== undefined)) return undefined;
  const contents = new Map(volumes.map((volume) => [volume.name, volume]));
  const there = disks.filter(isPlugged);
  const fixed = there.filter((disk) => !isMovable(disk, contents.get(disk.name)));
  return [there[0], ...fixed].map((disk) => disk?.name ?? '');
}

/** The generation that the instance shows, or all of it where there is none. */
export function observedGeneration(world: VmWorld): number | undefined {
  const { vm, vmi } = world;
  if (vmi === undefined || !restartRequired(world)) return vm.metadata.generation;
  const made = Number(vmi.metadata.annotations?.[VM_GENERATION_ANNOTATION]);
  return Number.isSafeInteger(made) ? made : undefined;
}
