/**
 * Applies changes of disks and interfaces in the template to the running instance, where that is possible: updates the
 * spec of the instance, and the node agent plugs and unplugs the devices. Other changes need a restart
 * (restart-required.ts). Pure.
 */
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import type { VmFailure, VmWorld } from '#controllers/vm/vm-world.ts';
import { decideDeviceSteps } from '#controllers/vm/hotplug/device-steps.ts';
import { buildHotplugPatch } from '#controllers/vm/hotplug/hotplug-patch.ts';
import { type InterfaceSteps } from '#controllers/vm/hotplug/hotplug-interfaces.ts';
import { type VolumeSteps } from '#controllers/vm/hotplug/hotplug-volumes.ts';
import { recordMacs } from '#controllers/vm/identity/identity.ts';
import { isDeleting } from '#kube/meta.ts';
import type { EventNote } from '#runtime/events.ts';
import type { Plan } from '#runtime/plan.ts';

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
