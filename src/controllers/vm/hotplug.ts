/**
 * Brings what the template says of disks and interfaces to the instance while it runs, as far as that can be done: its
 * spec is changed, and the node agent plugs and unplugs. What needs a restart is left alone (restart-required.ts). Pure.
 */
import { readEphemeralVolumes } from '#api/ephemeral-volumes.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { buildVmi } from '#controllers/vm/build-vmi.ts';
import type { Trouble } from '#controllers/vm/conditions.ts';
import { hotplugPatch } from '#controllers/vm/hotplug-patch.ts';
import { interfaceSteps, type InterfaceSteps, type InterfaceView } from '#controllers/vm/hotplug-interfaces.ts';
import { volumeSteps, type VolumeSteps } from '#controllers/vm/hotplug-volumes.ts';
import { identityOf, knownIdentity, ownRecord, recordMacs } from '#controllers/vm/identity.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import type { EventNote } from '#runtime/events.ts';
import type { Plan } from '#runtime/plan.ts';

export interface DeviceSteps {
  /** What a start would make now. */
  readonly next: VmiSpec;
  readonly volumes: VolumeSteps;
  readonly interfaces: InterfaceSteps;
  /** Names of volumes that the instance has for this run only. */
  readonly ephemeral: readonly string[];
  /** Those of them that the template has, too, by now. */
  readonly persisted: readonly string[];
}

/** For an instance that is there; whether it is the moment to do them is not asked. */
export function deviceSteps(world: VmWorld, vmi: Stored<VirtualMachineInstance>): DeviceSteps {
  const { vm, configuration } = world;
  const next = buildVmi(vm, identityOf(vm, knownIdentity(world), world), configuration).spec;
  const now = vmi.spec;
  const noted = readEphemeralVolumes(vmi);
  const listed = new Set(noted);
  // Where it cannot be read nothing is known of what was plugged in by hand: it stays.
  const isEphemeral = (name: string): boolean => noted === undefined || listed.has(name);
  const wanted = new Set(next.volumes?.map(({ name }) => name));
  return {
    next,
    volumes: volumeSteps({ next, now, isEphemeral, hotplug: vmi.status?.hotplug }),
    interfaces: interfaceSteps({ next, now, ...recorded(world, vmi) }),
    ephemeral: noted ?? [],
    persisted: (noted ?? []).filter((name) => wanted.has(name)),
  };
}

/** A node that tells no hash is an old one, from which nothing is read. */
function recorded(world: VmWorld, { status }: VirtualMachineInstance): Pick<InterfaceView, 'rows' | 'isRead'> {
  const record = ownRecord(world);
  const { deviceHash: hash } = status ?? {};
  const isRead = record === undefined || hash === undefined || record.status?.deviceHash === hash;
  return { rows: record?.status?.devices ?? [], isRead };
}

/** Undefined where there is nothing to do, or it is not the moment. */
export function hotplug(world: VmWorld): Plan | undefined {
  const { vmi, lock } = world;
  if (vmi === undefined || vmi.status?.phase !== 'Running' || isDeleting(vmi) || lock !== undefined) return undefined;
  const steps = deviceSteps(world, vmi);
  const { volumes, interfaces } = steps;
  // Made for it once, and on record before the guest sees it.
  const macs = recordMacs(
    world,
    interfaces.plug.map(({ nic }) => nic.name),
  );
  // What fails is told in the status (concludeVm); otherwise the next look tells all.
  if (macs.length > 0) return { changes: macs, goOn: true };
  const body = hotplugPatch(vmi, steps);
  if (body.length === 0) return undefined;
  const { name, namespace, uid } = vmi.metadata;
  const patch = { type: 'json', body } as const;
  const why = 'its disks and interfaces follow the template';
  return {
    changes: [{ do: 'patch', type: VIRTUAL_MACHINE_INSTANCES, name: { name, namespace }, uid, patch, why }],
    events: [...volumeNews(volumes), ...interfaceNews(interfaces)],
    goOn: true,
  };
}

/** What a start that fails is told with would be wrong of a guest that runs. */
export function hotplugTrouble({ vmi }: VmWorld, cause: string): Trouble | undefined {
  if (vmi?.status?.phase !== 'Running') return undefined;
  return { reason: 'FailedHotplug', message: `Failure while changing the devices of the running VMI: ${cause}` };
}

function volumeNews({ plug, unplug }: VolumeSteps): EventNote[] {
  return [
    ...unplug.map(({ name, returns }) => {
      const then = returns ? '; it has changed, and is plugged in again when the guest has let go of it' : '';
      return news('UnplugVolume', `Unplugging volume "${name}" from the running instance${then}`);
    }),
    ...plug.map(({ volume: { name, persistentVolumeClaim: claim } }) => {
      const what = `volume "${name}" with the claim "${claim?.claimName}"`;
      return news('HotplugVolume', `Plugging ${what} into the running instance`);
    }),
  ];
}

function interfaceNews({ plug, bringBack, unplug, links }: InterfaceSteps): EventNote[] {
  const coming = [...plug.map(({ nic }) => nic.name), ...bringBack];
  return [
    ...unplug.map((name) => news('UnplugInterface', `Unplugging interface "${name}" from the running instance`)),
    ...coming.map((name) => news('HotplugInterface', `Plugging interface "${name}" into the running instance`)),
    ...[...links]
      .filter(([name]) => !bringBack.includes(name))
      .map(([name, link]) => news('InterfaceLink', `Setting the link of interface "${name}" ${link}`)),
  ];
}

function news(reason: string, message: string): EventNote {
  return { type: 'Normal', reason, message };
}
