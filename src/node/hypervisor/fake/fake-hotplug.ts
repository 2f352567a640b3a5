/**
 * Hotplug of a simulated guest. The guest releases a device at once when asked, unless it is paused or holds its
 * devices; a restart releases all of them, as with QEMU. SCSI disks are released by QEMU alone, whatever the guest
 * does.
 */
import type { Device, DomainDefinition, PluggableDevice } from '#node/hardware/domain-definition.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { findPlaceError } from '#node/hypervisor/fake/fake-places.ts';
import type { GuestRecord } from '#node/hypervisor/fake/guest-record.ts';

export class FakeHotplug {
  readonly #record: GuestRecord;
  /** Called after each change of the record; `devicesChanged` is true if a device was added or removed. */
  readonly #onChange: (devicesChanged: boolean) => void;
  /** Devices that the present process has asked for. The guest itself remembers more (GuestRecord.letGoOf). */
  #unplugging: Set<string> | undefined;

  constructor(record: GuestRecord, onChange: (devicesChanged: boolean) => void) {
    this.#record = record;
    this.#onChange = onChange;
  }

  get unplugging(): readonly string[] {
    return [...(this.#unplugging ?? [])];
  }

  /** Throws if the guest cannot take a device at that address. */
  plug(device: PluggableDevice): void {
    const definition = definitionOf(this.#record);
    if (definition.devices.some(({ id }) => id === device.id)) return;
    const placeError = findPlaceError(definition, device);
    if (placeError !== undefined) throw hotplugError('plug', device.id, definition, placeError);
    this.#setDefinition({ ...definition, devices: [...definition.devices, device] });
  }

  unplug(deviceId: string): void {
    const definition = definitionOf(this.#record);
    const device = definition.devices.find(({ id }) => id === deviceId);
    if (device === undefined) return;
    if (!isPluggable(device)) throw hotplugError('unplug', deviceId, definition, 'the device does not support hotplug');
    (this.#unplugging ??= new Set()).add(deviceId);
    this.#record.letGoOf = [...new Set([...(this.#record.letGoOf ?? []), deviceId])];
    const { holdsDevices, current } = this.#record;
    const isFree = current.state === 'running' || (device.type === 'disk' && device.bus === 'scsi');
    if (holdsDevices !== true && isFree) this.release(deviceId);
    else this.#onChange(false);
  }

  setLink(deviceId: string, link: 'up' | 'down'): void {
    const definition = definitionOf(this.#record);
    const nic = definition.devices.find(({ id }) => id === deviceId);
    if (nic?.type !== 'interface' || (nic.link ?? 'up') === link) return;
    const { link: _was, ...rest } = nic;
    const next: Device = link === 'down' ? { ...rest, link } : rest;
    this.#setDefinition({
      ...definition,
      devices: definition.devices.map((device) => (device === nic ? next : device)),
    });
  }

  /** Releases one device that the guest was asked for, or all of them; then it no longer holds devices. */
  release(deviceId?: string): void {
    if (deviceId === undefined) this.#record.holdsDevices = false;
    const requested = this.#record.letGoOf ?? [];
    const released = new Set(deviceId === undefined ? requested : requested.filter((id) => id === deviceId));
    if (released.size === 0) return;
    const definition = definitionOf(this.#record);
    for (const id of released) this.#unplugging?.delete(id);
    this.#record.letGoOf = requested.filter((id) => !released.has(id));
    this.#setDefinition({ ...definition, devices: definition.devices.filter(({ id }) => !released.has(id)) });
  }

  /** Drops the requests of this process; the next process does not know them. */
  forgetRequests(): void {
    this.#unplugging = undefined;
  }

  #setDefinition(definition: DomainDefinition): void {
    this.#record.definition = JSON.stringify(definition);
    this.#onChange(true);
  }
}

export function definitionOf({ definition }: GuestRecord): DomainDefinition {
  return JSON.parse(definition) as DomainDefinition;
}

function isPluggable(device: Device): device is PluggableDevice {
  if (device.type === 'interface') return true;
  return device.type === 'disk' && (device.bus === 'virtio' || device.bus === 'scsi');
}

function hotplugError(verb: string, id: string, { name }: DomainDefinition, why: string): HypervisorError {
  return new HypervisorError(`Cannot ${verb} "${id}" of domain "${name}": ${why}`, { permanent: true });
}
