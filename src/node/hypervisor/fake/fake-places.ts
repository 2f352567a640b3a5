/** Checks whether a device can be plugged into a simulated guest at its address, with QEMU's error texts. Pure. */
import { chipsetOf } from '#api/devices/chipset.ts';
import type { DeviceAddress } from '#api/devices/learned-device.ts';
import { portOf } from '#api/devices/root-ports.ts';
import { pciAddressFromMap } from '#api/devices/pci-address.ts';
import type { Device, DomainDefinition, PluggableDevice } from '#node/hardware/domain-definition.ts';

/** Returns why the device cannot be plugged in, or undefined if it can. */
export function findPlaceError(definition: DomainDefinition, device: PluggableDevice): string | undefined {
  if (device.type === 'interface' || device.bus === 'virtio') return findPciError(definition, device);
  if (device.bus !== 'scsi') return `bus "${device.bus}" does not support hotplugging`;
  if (!definition.devices.some(({ type }) => type === 'scsi-controller')) return "Bus 'scsi0.0' not found";
  const holder = definition.devices.find(
    (other) => isScsi(other) && other.address?.['unit'] === device.address?.['unit'],
  );
  return holder && `lun already used by '${holder.id}'`;
}

function findPciError({ machine, devices }: DomainDefinition, { id, address }: PluggableDevice): string | undefined {
  const pci = address && pciAddressFromMap(address);
  if (address === undefined || pci === undefined) return `${id} has no PCI address`;
  if (chipsetOf(machine) === 'i440fx') {
    if (pci.bus !== 0) return `Bus "${pci.bus}" not found`;
  } else {
    const port = portOf(pci);
    if (port === undefined) return "Bus 'pcie.0' does not support hotplugging";
    if (!devices.some((other) => other.type === 'root-port' && other.index === port))
      return `Bus 'rp${port}' not found`;
  }
  const holder = devices.find((other) => other.address !== undefined && isSameAddress(other.address, address));
  return holder && `PCI: slot ${pci.slot} function ${pci.function} not available, in use by ${holder.id}`;
}

function isScsi(device: Device): boolean {
  return device.type === 'disk' && device.bus === 'scsi';
}

function isSameAddress(one: DeviceAddress, other: DeviceAddress): boolean {
  const [a, b] = [pciAddressFromMap(one), pciAddressFromMap(other)];
  return a !== undefined && b !== undefined && a.bus === b.bus && a.slot === b.slot && a.function === b.function;
}
