/**
 * Applies changes of disks and interfaces in the template to the running instance, where that is possible: updates the
 * spec of the instance, and the node agent plugs and unplugs the devices. Other changes need a restart
 * (restart-required.ts). Pure.
 */
import { readEphemeralVolumes } from '#api/storage/ephemeral-volumes.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { buildVmi } from '#controllers/vm/build-vmi.ts';
import type { VmFailure } from '#controllers/vm/conditions.ts';
import { buildHotplugPatch } from '#controllers/vm/hotplug-patch.ts';
import {
  decideInterfaceSteps,
  type InterfaceSteps,
  type InterfaceHotplugInput,
} from '#controllers/vm/hotplug-interfaces.ts';
import { decideVolumeSteps, type VolumeSteps } from '#controllers/vm/hotplug-volumes.ts';
import { resolveIdentity, knownIdentity, ownRecord, recordMacs } from '#controllers/vm/identity.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import type { EventNote } from '#runtime/events.ts';
import type { Plan } from '#runtime/plan.ts';

export interface DeviceSteps {
  /** The spec that a start would build now. */
  readonly next: VmiSpec;
  readonly volumes: VolumeSteps;
  readonly interfaces: InterfaceSteps;
  /** Names of volumes that were plugged into the instance for this run only. */
  readonly ephemeral: readonly string[];
  /** Names of ephemeral volumes that have since been added to the template as well. */
  readonly persisted: readonly string[];
}

/** Returns the differences between the instance and the template, whether or not they can be applied now. */
export function decideDeviceSteps(world: VmWorld, vmi: Stored<VirtualMachineInstance>): DeviceSteps {
  const { vm, configuration } = world;
  const next = buildVmi(vm, resolveIdentity(vm, knownIdentity(world), world), configuration).spec;
  const now = vmi.spec;
  const readNames = readEphemeralVolumes(vmi);
  const listed = new Set(readNames);
  // If the annotation cannot be read, any volume may have been plugged in for this run only: all of them stay.
  const isEphemeral = (name: string): boolean => readNames === undefined || listed.has(name);
  const wanted = new Set(next.volumes?.map(({ name }) => name));
  return {
    next,
    volumes: decideVolumeSteps({ next, now, isEphemeral, hotplug: vmi.status?.hotplug }),
    interfaces: decideInterfaceSteps({ next, now, ...recordedInterfaces(world, vmi) }),
    ephemeral: readNames ?? [],
    persisted: (readNames ?? []).filter((name) => wanted.has(name)),
  };
}

/** Returns the record's rows. An instance without a device hash is on an old node, whose devices are not recorded. */
function recordedInterfaces(
  world: VmWorld,
  { status }: VirtualMachineInstance,
): Pick<InterfaceHotplugInput, 'rows' | 'isRecordCurrent'> {
  const record = ownRecord(world);
  const { deviceHash: hash } = status ?? {};
  const isRecordCurrent = record === undefined || hash === undefined || record.status?.deviceHash === hash;
  return { rows: record?.status?.devices ?? [], isRecordCurrent };
}

/** Returns the plan for the next change, or undefined if there is none or the instance cannot be changed now. */
export function planHotplug(world: VmWorld): Plan | undefined {
  const { vmi, lock } = world;
  if (vmi === undefined || vmi.status?.phase !== 'Running' || isDeleting(vmi) || lock !== undefined) return undefined;
  const steps = decideDeviceSteps(world, vmi);
  const { volumes, interfaces } = steps;
  // MAC addresses of new interfaces must be recorded before the guest sees them.
  const macs = recordMacs(
    world,
    interfaces.plug.map(({ nic }) => nic.name),
  );
  // concludeVm reports a failure in the status; on success the next reconcile computes the full status.
  if (macs.length > 0) return { changes: macs, continueOnError: true };
  const body = buildHotplugPatch(vmi, steps);
  if (body.length === 0) return undefined;
  const { name, namespace, uid } = vmi.metadata;
  const patch = { type: 'json', body } as const;
  const why = 'the disks or interfaces of the template have changed';
  return {
    changes: [{ do: 'patch', type: VIRTUAL_MACHINE_INSTANCES, name: { name, namespace }, uid, patch, why }],
    events: [...volumeEvents(volumes), ...interfaceEvents(interfaces)],
    continueOnError: true,
  };
}

/** Returns the failure to report for a running guest; undefined otherwise: then the start has failed. */
export function hotplugFailure({ vmi }: VmWorld, cause: string): VmFailure | undefined {
  if (vmi?.status?.phase !== 'Running') return undefined;
  return { reason: 'FailedHotplug', message: `Failure while changing the devices of the running VMI: ${cause}` };
}

function volumeEvents({ plug, unplug }: VolumeSteps): EventNote[] {
  return [
    ...unplug.map(({ name, returns }) => {
      const then = returns ? '; it has changed and is plugged in again when the guest has released it' : '';
      return normalEvent('UnplugVolume', `Unplugging volume "${name}" from the running instance${then}`);
    }),
    ...plug.map(({ volume: { name, persistentVolumeClaim: claim } }) => {
      const what = `volume "${name}" with the claim "${claim?.claimName}"`;
      return normalEvent('HotplugVolume', `Plugging ${what} into the running instance`);
    }),
  ];
}

function interfaceEvents({ plug, bringBack, unplug, links }: InterfaceSteps): EventNote[] {
  const plugged = [...plug.map(({ nic }) => nic.name), ...bringBack];
  return [
    ...unplug.map((name) => normalEvent('UnplugInterface', `Unplugging interface "${name}" from the running instance`)),
    ...plugged.map((name) => normalEvent('HotplugInterface', `Plugging interface "${name}" into the running instance`)),
    ...[...links]
      .filter(([name]) => !bringBack.includes(name))
      .map(([name, link]) => normalEvent('InterfaceLink', `Setting the link of interface "${name}" ${link}`)),
  ];
}

function normalEvent(reason: string, message: string): EventNote {
  return { type: 'Normal', reason, message };
}
