/**
 * Places on PCI: behind each root port there is one, which the guest sees as bus 0x01 to 0x20, slot 0, function 0.
 * Which device stands where is decided by node/definition; here only what can never work is refused.
 */
import { interfacesOf } from '#api/attached-interfaces.ts';
import { busOf } from '#api/validation/disks.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { duplicateValue, forbiddenField, invalidValue, type FieldError } from '#kube/field-error.ts';

export const MAX_ROOT_PORTS = 32;
/** Kept free, so that devices can be plugged in while the guest runs. */
export const SPARE_ROOT_PORTS = 4;
const MAX_PCI_DEVICES = MAX_ROOT_PORTS - SPARE_ROOT_PORTS;

const PCI_ADDRESS = /^([0-9a-f]{4}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])$/i;

export function checkPciAddresses(spec: VmiSpec, path: string): FieldError[] {
  const { disks = [], interfaces = [] } = spec.domain.devices ?? {};
  const field = `${path}.domain.devices`;
  const asked = [
    ...interfaces.map(({ pciAddress }, i) => ({ address: pciAddress, at: `${field}.interfaces[${i}].pciAddress` })),
    ...disks.map(({ disk }, i) => ({ address: disk?.pciAddress, at: `${field}.disks[${i}].disk.pciAddress` })),
  ];
  const seen = new Set<string>();
  const errors: FieldError[] = [];
  for (const { address, at } of asked) {
    if (address === undefined || address === '') continue;
    const key = address.toLowerCase();
    if (!isPlace(key)) {
      const text = 'must be 0000:<bus>:00.0 with a bus from 01 to 20 (hexadecimal), which is behind a root port';
      errors.push(invalidValue(at, address, text));
    } else if (seen.has(key)) errors.push(duplicateValue(at, address));
    seen.add(key);
  }
  const virtio = disks.filter((disk) => busOf(disk) === 'virtio').length;
  const count = interfacesOf(spec).length + virtio;
  if (count > MAX_PCI_DEVICES) {
    const text = `interfaces and disks on the bus virtio are ${count}, more than ${MAX_PCI_DEVICES}; use the bus scsi`;
    errors.push(forbiddenField(field, text));
  }
  return errors;
}

function isPlace(address: string): boolean {
  const [, domain, bus = '', slot, func] = PCI_ADDRESS.exec(address) ?? [];
  const at = Number.parseInt(bus, 16);
  return domain === '0000' && slot === '00' && func === '0' && at >= 1 && at <= MAX_ROOT_PORTS;
}
