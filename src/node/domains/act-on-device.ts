/** Carries out what decide-hotplug.ts asks for: one device, one step. What is expected to go wrong is noted and told. */
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Stored } from '#kube/meta.ts';
import { invariant, unreachable } from '#lib/invariant.ts';
import type { ActParts } from '#node/domains/act.ts';
import type { DomainAction } from '#node/domains/domain-action.ts';
import type { DomainWorld } from '#node/domains/domain-world.ts';
import type { HotplugDevice } from '#node/domains/hotplug-devices.ts';
import { plugDevice } from '#node/domains/plug-device.ts';
import { prepareVolumes } from '#node/domains/start-domain.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';

type DeviceAction = Extract<DomainAction, { readonly device: HotplugDevice }>;

export async function actOnDevice(
  id: string,
  { do: step, device }: DeviceAction,
  world: DomainWorld,
  parts: ActParts,
): Promise<void> {
  const { vmi } = world;
  invariant(vmi !== undefined, 'devices come and go for an instance');
  const { volumes, hotplugNotes } = parts;
  switch (step) {
    case 'plug':
      return await plug(id, device, vmi, parts);
    case 'unplug':
      return await unplug(id, device, parts);
    case 'clear':
      if (device.type === 'disk') await volumes.releaseVolume(id, device.name);
      hotplugNotes.cleared(id, device.id);
      if (wasInGuest(device, vmi)) tellGone(device, vmi, parts);
      return;
    case 'setLink':
      return await changeLink(id, device, vmi, parts);
    case 'verify':
      return await verify(id, device, world, parts);
    default:
      return unreachable(step);
  }
}

/** Not one that could not be plugged in and is not wanted any more. */
function wasInGuest({ id }: HotplugDevice, { status }: VirtualMachineInstance): boolean {
  const phase = status?.hotplug?.find(({ device }) => device === id)?.phase;
  return phase === 'Ready' || phase === 'Unplugging';
}

function tellGone({ id }: HotplugDevice, vmi: Stored<VirtualMachineInstance>, { events }: ActParts): void {
  events.record(vmi, { type: 'Normal', reason: 'DeviceUnplugged', message: `${id} was unplugged.` });
}

async function plug(
  id: string,
  device: HotplugDevice,
  vmi: Stored<VirtualMachineInstance>,
  parts: ActParts,
): Promise<void> {
  const { hotplugNotes, clock, events } = parts;
  const outcome = await plugDevice(vmi, device, parts);
  if (outcome.is === 'plugged') {
    hotplugNotes.standsOn(id, device.id, device.claim);
    events.record(vmi, { type: 'Normal', reason: 'DevicePlugged', message: `${device.id} was plugged in.` });
    return;
  }
  const { claim } = device;
  const isNews = hotplugNotes.refused(id, device.id, { ...outcome, ...(claim && { claim }) }, clock.elapsed());
  if (outcome.is === 'failed' && isNews) {
    events.record(vmi, { type: 'Warning', reason: 'PlugFailed', message: `${device.id}: ${outcome.message}` });
  }
}

async function unplug(id: string, device: HotplugDevice, parts: ActParts): Promise<void> {
  const { hypervisor, hotplugNotes, clock } = parts;
  try {
    await hypervisor.unplug(id, device.id);
    hotplugNotes.asked(id, device.id, clock.elapsed());
  } catch (error) {
    if (!(error instanceof HypervisorError)) throw error;
    hotplugNotes.asked(id, device.id, clock.elapsed(), error.message);
  }
}

async function changeLink(
  id: string,
  { id: deviceId, link }: HotplugDevice,
  vmi: Stored<VirtualMachineInstance>,
  { hypervisor, hotplugNotes, clock, events }: ActParts,
): Promise<void> {
  invariant(link !== undefined, 'a link is set to something');
  try {
    await hypervisor.setLink(id, deviceId, link);
    events.record(vmi, { type: 'Normal', reason: 'LinkChanged', message: `The link of ${deviceId} is ${link}.` });
  } catch (error) {
    if (!(error instanceof HypervisorError)) throw error;
    hotplugNotes.refused(
      id,
      deviceId,
      { is: 'waiting', reason: 'LinkFailed', message: error.message },
      clock.elapsed(),
    );
  }
}

/** A claim that is not ready cannot be told from another one: the disk stays, and it is looked at again. */
async function verify(id: string, device: HotplugDevice, world: DomainWorld, parts: ActParts): Promise<void> {
  const { vmi, inspection } = world;
  invariant(vmi !== undefined && device.claim !== undefined, 'a disk on a claim is verified');
  const { hotplugNotes, clock } = parts;
  const prepared = await prepareVolumes(vmi, parts, [device.name]);
  if (prepared.is !== 'ready') {
    hotplugNotes.refused(id, device.id, { ...prepared, is: 'waiting' }, clock.elapsed());
    return;
  }
  const inGuest = inspection?.definition.devices.find((candidate) => candidate.id === device.id);
  const path = inGuest?.type === 'disk' ? inGuest.source?.path : undefined;
  const isSame = path === prepared.volumes.get(device.name)?.source.path;
  hotplugNotes.standsOn(id, device.id, isSame ? device.claim : '');
}
