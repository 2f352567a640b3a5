/** Carries out the actions of decide-hotplug.ts: one step for one device. Expected failures are noted and reported. */
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { invariant, unreachable } from '#lib/invariant.ts';
import type { DomainActionParts } from '#node/domains/domain-action-parts.ts';
import type { DomainAction } from '#node/domains/domain-action.ts';
import type { DomainWorld } from '#node/domains/domain-world.ts';
import type { HotplugDevice } from '#node/domains/hotplug/hotplug-devices.ts';
import { plugDevice } from '#node/domains/hotplug/plug-device.ts';
import { prepareVolumes } from '#node/domains/start-instance.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';

type DeviceAction = Extract<DomainAction, { readonly device: HotplugDevice }>;

export async function actOnDevice(
  id: string,
  { do: step, device }: DeviceAction,
  world: DomainWorld,
  parts: DomainActionParts,
): Promise<void> {
  const { vmi } = world;
  invariant(vmi !== undefined, 'only an existing instance has devices');
  const { volumes, hotplugNotes } = parts;
  switch (step) {
    case 'plug':
      return await plug(id, device, vmi, { ...parts, pod: world.pod });
    case 'unplug':
      return await unplug(id, device, parts);
    case 'clear':
      if (device.type === 'disk') await volumes.releaseVolume(id, device.name);
      hotplugNotes.recordCleared(id, device.id);
      if (wasInGuest(device, vmi)) recordUnplugged(device, vmi, parts);
      return;
    case 'setLink':
      return await setLink(id, device, vmi, parts);
    case 'verify':
      return await verifyClaim(id, device, world, parts);
    default:
      return unreachable(step);
  }
}

/** Reports whether the guest had the device, in contrast to one that could not be plugged in. */
function wasInGuest({ id }: HotplugDevice, { status }: VirtualMachineInstance): boolean {
  const phase = status?.hotplug?.find(({ device }) => device === id)?.phase;
  return phase === 'Ready' || phase === 'Unplugging';
}

function recordUnplugged(
  { id }: HotplugDevice,
  vmi: Stored<VirtualMachineInstance>,
  { events }: DomainActionParts,
): void {
  events.record(vmi, { type: 'Normal', reason: 'DeviceUnplugged', message: `${id} was unplugged.` });
}

async function plug(
  id: string,
  device: HotplugDevice,
  vmi: Stored<VirtualMachineInstance>,
  parts: DomainActionParts & { readonly pod: Stored<Pod> | undefined },
): Promise<void> {
  const { hotplugNotes, clock, events } = parts;
  const outcome = await plugDevice(vmi, device, parts);
  if (outcome.is === 'plugged') {
    hotplugNotes.recordClaim(id, device.id, device.claim);
    events.record(vmi, { type: 'Normal', reason: 'DevicePlugged', message: `${device.id} was plugged in.` });
    return;
  }
  const { claim } = device;
  const isNew = hotplugNotes.recordFailure(id, device.id, { ...outcome, ...(claim && { claim }) }, clock.elapsed());
  if (outcome.is === 'failed' && isNew) {
    events.record(vmi, { type: 'Warning', reason: 'PlugFailed', message: `${device.id}: ${outcome.message}` });
  }
}

async function unplug(id: string, device: HotplugDevice, parts: DomainActionParts): Promise<void> {
  const { hypervisor, hotplugNotes, clock } = parts;
  try {
    await hypervisor.unplug(id, device.id);
    hotplugNotes.recordUnplugRequest(id, device.id, clock.elapsed());
  } catch (error) {
    if (!(error instanceof HypervisorError)) throw error;
    hotplugNotes.recordUnplugRequest(id, device.id, clock.elapsed(), error.message);
  }
}

async function setLink(
  id: string,
  { id: deviceId, link }: HotplugDevice,
  vmi: Stored<VirtualMachineInstance>,
  { hypervisor, hotplugNotes, clock, events }: DomainActionParts,
): Promise<void> {
  invariant(link !== undefined, 'setLink has a link');
  try {
    await hypervisor.setLink(id, deviceId, link);
    events.record(vmi, { type: 'Normal', reason: 'LinkChanged', message: `The link of ${deviceId} is ${link}.` });
  } catch (error) {
    if (!(error instanceof HypervisorError)) throw error;
    hotplugNotes.recordFailure(
      id,
      deviceId,
      { is: 'waiting', reason: 'LinkFailed', message: error.message },
      clock.elapsed(),
    );
  }
}

/** Records whether a disk uses the claim in the spec. If that claim is not ready, the check is repeated later. */
async function verifyClaim(
  id: string,
  device: HotplugDevice,
  world: DomainWorld,
  parts: DomainActionParts,
): Promise<void> {
  const { vmi, inspection } = world;
  invariant(vmi !== undefined && device.claim !== undefined, 'only a disk with a claim is verified');
  const { hotplugNotes, clock } = parts;
  const prepared = await prepareVolumes(vmi, parts, [device.name]);
  if (prepared.is !== 'ready') {
    hotplugNotes.recordFailure(id, device.id, { ...prepared, is: 'waiting' }, clock.elapsed());
    return;
  }
  const inGuest = inspection?.definition.devices.find((candidate) => candidate.id === device.id);
  const path = inGuest?.type === 'disk' ? inGuest.source?.path : undefined;
  const isOnClaim = path === prepared.volumes.get(device.name)?.source.path;
  hotplugNotes.recordClaim(id, device.id, isOnClaim ? device.claim : '');
}
