/**
 * Compares the hotpluggable devices in the instance's spec with those in the guest: disks of hotpluggable claims, and
 * interfaces without a boot order. All other devices stay as they were at the start. Pure.
 *
 *                 in the guest                 not in the guest
 *   wanted        present                      missing: to be plugged in
 *   not wanted    surplus: to be unplugged     gone: its volume is released
 */
import { interfacesOf } from '#api/devices/attached-interfaces.ts';
import { isHotpluggable, isPlugged } from '#api/devices/disk-bus.ts';
import { HOTPLUG_BUSES } from '#api/domain/disk.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { HotplugPhase } from '#api/virtual-machine-instance/status.ts';
import type { Device, PluggableDevice } from '#node/hardware/domain-definition.ts';
import { hotpluggableClaims, type HotplugNote } from '#node/guests/hotplug-notes.ts';
import type { DomainInspection } from '#node/hypervisor/hypervisor.ts';

export interface HotplugDevice {
  /** `disk-<name>` or `nic-<name>`. */
  readonly id: string;
  readonly type: PluggableDevice['type'];
  readonly name: string;
  readonly is: 'present' | 'missing' | 'surplus' | 'gone';
  /** The claim of a wanted disk, from the spec. */
  readonly claim?: string;
  /**
   * The device is being unplugged and is wanted again meanwhile. It is plugged in again after the guest released it, or it
   * stays if the guest does not release it.
   */
  readonly isWantedAgain?: boolean;
  /** The wanted link of an interface in the guest, if it differs from the current one. */
  readonly link?: 'up' | 'down';
  /** The volume of a previous device with this id must be released first. */
  readonly needsCleanup?: boolean;
}

/** The state of a device in the report. */
export interface HotplugState {
  readonly device: string;
  readonly phase: HotplugPhase;
  /** The reason why the device is not Ready; absent while the change simply proceeds. */
  readonly reason?: string;
  readonly message?: string;
}

export type DeviceNotes = ReadonlyMap<string, HotplugNote>;

export function hotplugDevices(
  vmi: VirtualMachineInstance,
  { definition, unplugging }: DomainInspection,
  notes: DeviceNotes,
): readonly HotplugDevice[] {
  const wanted = wantedDevices(vmi);
  const present = new Map(definition.devices.filter(isHotpluggableDevice).map((device) => [device.id, device]));
  const reported = new Map(vmi.status?.hotplug?.map(({ device, phase }) => [device, phase]));
  const ignored = ignoredIds(vmi, wanted);
  const found: HotplugDevice[] = [];

  const links = new Map(
    definition.devices.flatMap((device) => (device.type === 'interface' ? [[device.id, device.link ?? 'up']] : [])),
  );
  for (const { isFixed, link, ...device } of wanted.values()) {
    const note = notes.get(device.id);
    const isPresent = present.has(device.id);
    const linkNow = links.get(device.id);
    const wrongLink = link !== undefined && linkNow !== undefined && link !== linkNow ? { link } : {};
    if (isFixed && wrongLink.link !== undefined) found.push({ ...device, ...wrongLink, is: 'present' });
    // Devices that are not hotpluggable stay as they were at the start.
    if (isFixed) continue;
    if (!isPresent) {
      const phase = reported.get(device.id);
      const needsCleanup = (phase === 'Ready' || phase === 'Unplugging') && note?.isCleared !== true;
      found.push({ ...device, is: 'missing', ...(needsCleanup ? { needsCleanup } : {}) });
    } else if (isOnOtherClaim(device, note)) found.push({ ...device, is: 'surplus' });
    else if (unplugging.includes(device.id)) found.push({ ...device, is: 'surplus', isWantedAgain: true });
    else found.push({ ...device, ...wrongLink, is: 'present' });
  }
  for (const { id, type, name } of present.values()) {
    if (!wanted.has(id) && !ignored.has(id)) found.push({ id, type, name, is: 'surplus' });
  }
  for (const id of reported.keys()) {
    if (wanted.has(id) || present.has(id) || notes.get(id)?.isCleared === true) continue;
    const named = parseDeviceId(id);
    if (named !== undefined) found.push({ id, ...named, is: 'gone' });
  }
  return found;
}

interface WantedDevice extends Pick<HotplugDevice, 'id' | 'type' | 'name' | 'claim' | 'link'> {
  /** The device cannot be plugged in while the guest runs. */
  readonly isFixed: boolean;
}

function wantedDevices(vmi: VirtualMachineInstance): ReadonlyMap<string, WantedDevice> {
  const claims = hotpluggableClaims(vmi);
  const volumes = new Map(vmi.spec.volumes?.map((volume) => [volume.name, volume]));
  const wanted = new Map<string, WantedDevice>();
  for (const disk of vmi.spec.domain.devices?.disks ?? []) {
    if (!isPlugged(disk)) continue;
    const claim = claims.get(disk.name);
    const isFixed = !isHotpluggable(disk, volumes.get(disk.name));
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

/** Returns the ids of disks that the spec marks as unplugged although they are not hotpluggable. */
function ignoredIds(vmi: VirtualMachineInstance, wanted: ReadonlyMap<string, WantedDevice>): ReadonlySet<string> {
  const claims = hotpluggableClaims(vmi);
  const fixed = (vmi.spec.domain.devices?.disks ?? []).filter(({ name }) => !claims.has(name));
  return new Set(fixed.map(({ name }) => `disk-${name}`).filter((id) => !wanted.has(id)));
}

function isHotpluggableDevice(device: Device): device is PluggableDevice {
  if (device.type === 'interface') return device.bootOrder === undefined;
  if (device.type !== 'disk' || (device.media !== 'disk' && device.media !== 'lun')) return false;
  return HOTPLUG_BUSES.some((bus) => bus === device.bus);
}

function isOnOtherClaim({ claim }: Pick<HotplugDevice, 'claim'>, note: HotplugNote | undefined): boolean {
  return claim !== undefined && note?.claim !== undefined && note.claim !== claim;
}

function parseDeviceId(id: string): Pick<HotplugDevice, 'type' | 'name'> | undefined {
  if (id.startsWith('disk-')) return { type: 'disk', name: id.slice('disk-'.length) };
  return id.startsWith('nic-') ? { type: 'interface', name: id.slice('nic-'.length) } : undefined;
}
