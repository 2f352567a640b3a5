/**
 * One try to plug a device into a running guest: its volume, its place, the hypervisor. What is expected to go wrong comes
 * back as a value; what the API does wrong is thrown, for the queue to try again.
 */
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Stored } from '#kube/meta.ts';
import { defineLateDisk, defineLateInterface } from '#node/definition/define-late.ts';
import type { Medium } from '#node/definition/devices/disk.ts';
import type { PluggableDevice } from '#node/definition/domain-definition.ts';
import type { HotplugDevice } from '#node/domains/hotplug-devices.ts';
import { knownDevices, prepareVolumes, type StartParts } from '#node/domains/start-domain.ts';
import { HypervisorError, type DomainInspection } from '#node/hypervisor/hypervisor.ts';

export type PlugOutcome =
  | { readonly is: 'plugged' }
  | { readonly is: 'waiting' | 'failed'; readonly reason: string; readonly message: string };

export type PlugParts = Pick<StartParts, 'client' | 'hypervisor' | 'volumes' | 'signal'>;

export async function plugDevice(
  vmi: Stored<VirtualMachineInstance>,
  { type, name }: HotplugDevice,
  parts: PlugParts,
): Promise<PlugOutcome> {
  const { client, hypervisor, signal } = parts;
  const { uid } = vmi.metadata;
  let medium: Medium | undefined;
  if (type === 'disk') {
    const prepared = await prepareVolumes(vmi, parts, [name]);
    if (prepared.is !== 'ready') return prepared;
    medium = prepared.volumes.get(name);
    if (medium === undefined) return failed(`there is no volume "${name}" in the spec`);
  }
  const known = await knownDevices(vmi, client, signal);
  // As it is now: others may have been plugged in by the same decision.
  const current = hypervisor.inspect(uid)?.definition;
  if (current === undefined) return { is: 'waiting', reason: 'GuestGone', message: 'the guest is not there' };
  const input = { vmi, name, current, known };
  const placed = medium === undefined ? defineLateInterface(input) : defineLateDisk({ ...input, medium });
  if (placed.problem !== undefined) return failed(placed.problem);
  try {
    await hypervisor.plug(uid, placed.device);
    return isInGuest(placed.device, hypervisor.inspect(uid)) ? { is: 'plugged' } : taken(placed.device);
  } catch (error) {
    if (!(error instanceof HypervisorError)) throw error;
    const { permanent, message } = error;
    return permanent ? failed(message) : { is: 'waiting', reason: 'PlugFailed', message };
  }
}

/** A try of which nobody knew how it ended may have plugged in what the spec named then, which is not what it names now. */
function isInGuest(device: PluggableDevice, inspection: DomainInspection | undefined): boolean {
  const there = inspection?.definition.devices.find(({ id }) => id === device.id);
  if (device.type === 'interface' || there?.type !== 'disk') return true;
  return there.source?.path === device.source?.path;
}

function taken({ id }: PluggableDevice): PlugOutcome {
  return { is: 'waiting', reason: 'PlugFailed', message: `the guest still has another ${id}` };
}

function failed(message: string): PlugOutcome {
  return { is: 'failed', reason: 'PlugFailed', message };
}
