/** Decides whether the running instance differs from the template in a way that only a restart can change. Pure. */
import { isHotpluggable, isPlugged } from '#api/devices/disk-bus.ts';
import { vmiSpec, type VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { VM_GENERATION_ANNOTATION } from '#controllers/vm/start/build-vmi.ts';
import { type DeviceSteps, decideDeviceSteps } from '#controllers/vm/hotplug/device-steps.ts';
import { normalizeInterface } from '#controllers/vm/hotplug/hotplug-interfaces.ts';
import { normalizeDisk } from '#controllers/vm/hotplug/hotplug-volumes.ts';
import { normalizeValue } from '#controllers/vm/hotplug/normalize-value.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { deepEqual } from '#kube/deep.ts';
import { isDeleting } from '#kube/meta.ts';
import { isFinal } from '#api/virtual-machine-instance/kind.ts';

export function requiresRestart(world: VmWorld): boolean {
  const { vmi } = world;
  if (vmi === undefined || isDeleting(vmi) || isFinal(vmi)) return false;
  const steps = decideDeviceSteps(world, vmi);
  const { next, volumes, interfaces } = steps;
  if (!deepEqual(bootDisks(next), bootDisks(specAfterHotplug(vmi.spec, steps)))) return true;
  const liveUpdatable = { volumes: volumes.liveUpdatable, interfaces: interfaces.liveUpdatable };
  return !deepEqual(comparable(next, liveUpdatable), comparable(vmi.spec, liveUpdatable));
}

/** Names of devices that hotplug updates, and that are therefore not compared. */
interface LiveUpdatable {
  readonly volumes: ReadonlySet<string>;
  readonly interfaces: ReadonlySet<string>;
}

/**
 * Returns the spec in a form that deepEqual can compare. The grace period and the start strategy concern how an
 * instance starts and stops, not the machine, and subresources change them on the instance. The order of devices does
 * not matter: each keeps its own address.
 */
function comparable(spec: VmiSpec, liveUpdatable: LiveUpdatable): unknown {
  const { terminationGracePeriodSeconds: _grace, startStrategy: _start, ...machine } = spec;
  const { devices } = machine.domain;
  const changed = {
    ...devices,
    disks: byName(devices?.disks?.map(normalizeDisk), liveUpdatable.volumes),
    interfaces: byName(devices?.interfaces?.map(normalizeInterface), liveUpdatable.interfaces),
  };
  const isEmpty = Object.values(changed).every((value) => value === undefined);
  return normalizeValue(vmiSpec, {
    ...machine,
    domain: { ...machine.domain, devices: isEmpty ? undefined : changed },
    volumes: byName(machine.volumes, liveUpdatable.volumes),
    networks: byName(machine.networks, liveUpdatable.interfaces),
  });
}

function byName<T extends { readonly name: string }>(
  list: readonly T[] | undefined,
  except: ReadonlySet<string>,
): T[] | undefined {
  const compared = (list ?? []).filter(({ name }) => !except.has(name));
  return compared.length === 0 ? undefined : compared.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Returns the spec of the instance after all pending hotplug steps, without volumes that it has for this run only. */
function specAfterHotplug(spec: VmiSpec, { next, volumes, ephemeral, persisted }: DeviceSteps): VmiSpec {
  const { devices } = spec.domain;
  const removed = new Set(volumes.unplug.map(({ name }) => name));
  for (const name of ephemeral) if (!persisted.includes(name)) removed.add(name);
  const kept = new Set((devices?.disks ?? []).flatMap(({ name }) => (removed.has(name) ? [] : [name])));
  const isAdded = ({ name }: { readonly name: string }): boolean => volumes.liveUpdatable.has(name) && !kept.has(name);
  const isKept = ({ name }: { readonly name: string }): boolean => kept.has(name);
  const disks = [...(devices?.disks ?? []).filter(isKept), ...(next.domain.devices?.disks ?? []).filter(isAdded)];
  const contents = [...(spec.volumes ?? []).filter(isKept), ...(next.volumes ?? []).filter(isAdded)];
  return { ...spec, domain: { ...spec.domain, devices: { ...devices, disks } }, volumes: contents };
}

/**
 * Returns the names of the disks whose order decides what the guest boots from: the first disk, and all that cannot be
 * hotplugged. Returns undefined if a device has a boot order: then the order of disks does not matter.
 */
function bootDisks({ domain, volumes = [] }: VmiSpec): string[] | undefined {
  const { disks = [], interfaces = [] } = domain.devices ?? {};
  if ([...disks, ...interfaces].some(({ bootOrder }) => bootOrder !== undefined)) return undefined;
  const contents = new Map(volumes.map((volume) => [volume.name, volume]));
  const plugged = disks.filter(isPlugged);
  const fixed = plugged.filter((disk) => !isHotpluggable(disk, contents.get(disk.name)));
  return [plugged[0], ...fixed].map((disk) => disk?.name ?? '');
}

/** Returns the generation that the instance was built from if it needs a restart, otherwise that of the VM. */
export function observedGeneration(world: VmWorld): number | undefined {
  const { vm, vmi } = world;
  if (vmi === undefined || !requiresRestart(world)) return vm.metadata.generation;
  const generation = Number(vmi.metadata.annotations?.[VM_GENERATION_ANNOTATION]);
  return Number.isSafeInteger(generation) ? generation : undefined;
}
