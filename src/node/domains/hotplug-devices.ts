/**
 * What of a guest may come and go while it runs, and how the spec of its instance and the guest stand to each other:
 * disks of hotpluggable claims and interfaces that nobody boots from. All else is as it was started. Pure.
 *
 *                 in the guest             not in the guest
 *   wanted        there                    missing: to be plugged in
 *   not wanted    surplus: asked to go     gone: what was made for it is cleared away
 */
import { interfacesOf } from '#api/attached-interfaces.ts';
import { isMovable, isPlugged } from '#api/disk-bus.ts';
import { HOTPLUG_BUSES } from '#api/domain/disk.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Device, PluggableDevice } from '#node/definition/domain-definition.ts';
import type { HotplugNote } from '#node/domains/hotplug-notes.ts';
import type { DomainInspection } from '#node/hypervisor/hypervisor.ts';

export interface HotplugDevice {
  /** disk-<name> or nic-<name>. */
  readonly id: string;
  readonly type: PluggableDevice['type'];
  readonly name: string;
  readonly is: 'there' | 'missing' | 'surplus' | 'gone';
  /** The claim that the spec names for a disk that is wanted. */
  readonly claim?: string;
  /** Wanted just as it is: it was asked to go and comes again when it has, or it stays where the guest does not let go. */
  readonly isAwaited?: boolean;
  /** Of an interface that is there: the link that it is to have, where it has another. */
  readonly link?: 'up' | 'down';
  /** What was made for the one before is still to be cleared away. */
  readonly isLeft?: boolean;
}

export type DeviceNotes = ReadonlyMap<string, HotplugNote>;

export function hotplugDevices(
  vmi: VirtualMachineInstance,
  { definition, leaving }: DomainInspection,
  notes: DeviceNotes,
): readonly HotplugDevice[] {
  const wanted = wantedDevices(vmi);
  const present = new Map(definition.devices.filter(comesAndGoes).map((device) => [device.id, device]));
  const told = new Map(vmi.status?.hotplug?.map(({ device, phase }) => [device, phase]));
  const untouched = idsToLeaveAlone(vmi, wanted);
  const found: HotplugDevice[] = [];

  const links = new Map(
    definition.devices.flatMap((device) => (device.type === 'interface' ? [[device.id, device.link ?? 'up']] : [])),
  );
  for (const { isFixed, link, ...device } of wanted.values()) {
    const note = notes.get(device.id);
    const isPresent = present.has(device.id);
    const linkNow = links.get(device.id);
    const wrongLink = link !== undefined && linkNow !== undefined && link !== linkNow ? { link } : {};
    if (isFixed && wrongLink.link !== undefined) found.push({ ...device, ...wrongLink, is: 'there' });
    // What the guest was started with and cannot be plugged in is none of ours.
    if (isFixed) continue;
    if (!isPresent) {
      const phase = told.get(device.id);
      const isLeft = (phase === 'Ready' || phase === 'Unplugging') && note?.isCleared !== true;
      found.push({ ...device, is: 'missing', ...(isLeft ? { isLeft } : {}) });
    } else if (isOfAnotherClaim(device, note)) found.push({ ...device, is: 'surplus' });
    else if (leaving.includes(device.id)) found.push({ ...device, is: 'surplus', isAwaited: true });
    else found.push({ ...device, ...wrongLink, is: 'there' });
  }
  for (const { id, type, name } of present.values()) {
    if (!wanted.has(id) && !untouched.has(id)) found.push({ id, type, name, is: 'surplus' });
  }
  for (const id of told.keys()) {
    if (wanted.has(id) || present.has(id) || notes.get(id)?.isCleared === true) continue;
    const named = nameOf(id);
    if (named !== undefined) found.push({ id, ...named, is: 'gone' });
  }
  return found;
}

interface Wanted extends Pick<HotplugDevice, 'id' | 'type' | 'name' | 'claim' | 'link'> {
  /** In the spec, but nothing that could be plugged in. */
  readonly isFixed: boolean;
}

function wantedDevices(vmi: VirtualMachineInstance): ReadonlyMap<string, Wanted> {
  const claims = hotpluggableClaims(vmi);
  const volumes = new Map(vmi.spec.volumes?.map((volume) => [volume.name, volume]));
  const wanted = new Map<string, Wanted>();
  for (const disk of vmi.spec.domain.devices?.disks ?? []) {
    if (!isPlugged(disk)) continue;
    const claim = claims.get(disk.name);
    const isFixed = !isMovable(disk, volumes.get(disk.name));
    const id = `disk-${disk.name}`;
    wanted.set(id, { id, type: 'disk', name: disk.name, isFixed, ...(claim === undefined ? {} : { claim }) });
  }
  for (const { name, state, bootOrder } of interfacesOf(vmi.spec)) {
    const id = `nic-${name}`;
    const link = state === 'down' ? 'down' : 'up';
    if (state !== 'absent') wanted.set(id, { id, type: 'interface', name, link, isFixed: bootOrder !== undefined });
  }
  return wanted;
}

/** In the guest and named by the spec as unplugged, but of a sort that does not come and go. */
function idsToLeaveAlone(vmi: VirtualMachineInstance, wanted: ReadonlyMap<string, Wanted>): ReadonlySet<string> {
  const claims = hotpluggableClaims(vmi);
  const fixed = (vmi.spec.domain.devices?.disks ?? []).filter(({ name }) => !claims.has(name));
  return new Set(fixed.map(({ name }) => `disk-${name}`).filter((id) => !wanted.has(id)));
}

/** By the name of the volume. */
export function hotpluggableClaims({ spec }: VirtualMachineInstance): ReadonlyMap<string, string> {
  return new Map(
    (spec.volumes ?? []).flatMap(({ name, persistentVolumeClaim: claim }) =>
      claim?.hotpluggable === true ? [[name, claim.claimName] as const] : [],
    ),
  );
}

function comesAndGoes(device: Device): device is PluggableDevice {
  if (device.type === 'interface') return device.bootOrder === undefined;
  if (device.type !== 'disk' || (device.media !== 'disk' && device.media !== 'lun')) return false;
  return HOTPLUG_BUSES.some((bus) => bus === device.bus);
}

function isOfAnotherClaim({ claim }: Pick<HotplugDevice, 'claim'>, note: HotplugNote | undefined): boolean {
  return claim !== undefined && note?.claim !== undefined && note.claim !== claim;
}

function nameOf(id: string): Pick<HotplugDevice, 'type' | 'name'> | undefined {
  if (id.startsWith('disk-')) return { type: 'disk', name: id.slice('disk-'.length) };
  return id.startsWith('nic-') ? { type: 'interface', name: id.slice('nic-'.length) } : undefined;
}
