/**
 * Checks PCI addresses in a spec. q35 has one place behind each root port, which the guest sees as bus 0x01 to 0x20,
 * slot 0, function 0; i440fx has the slots of bus 0, except those of the chipset. node/definition assigns the places;
 * this module refuses only what can never work.
 */
import { interfacesOf } from '#api/devices/attached-interfaces.ts';
import type { Chipset } from '#api/devices/chipset.ts';
import { isConventional, type Interface } from '#api/domain/interface.ts';
import { inputsOf, needsUsb } from '#api/devices/fixed-devices.ts';
import type { Configuration } from '#api/kubevirt/configuration.ts';
import { chipsetOfSpec } from '#api/validation/devices/chipset-of-spec.ts';
import { busOf, isPlugged } from '#api/devices/disk-bus.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { duplicateValue, forbiddenField, invalidValue, type FieldError } from '#kube/field-error.ts';

const MAX_ROOT_PORTS = 32;
/** Root ports that are kept free for hotplug. */
const SPARE_ROOT_PORTS = 4;
/** First slot of bus 0 on i440fx; lower slots belong to the chipset. */
const FIRST_SLOT = 0x02;
const LAST_SLOT = 0x1f;
/** Slots of video, SCSI controller, balloon and RNG. Other devices of the spec are counted. */
const TAKEN_SLOTS = 4;
/** Limit of conventional interfaces on the root bus of q35, which other devices share. */
const MAX_CONVENTIONAL = 8;

const PCI_ADDRESS = /^([0-9a-f]{4}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])$/i;

interface Places {
  /** Maximum number of interfaces and disks. */
  readonly max: number;
  readonly expected: string;
  has(bus: number, slot: number): boolean;
}

const PLACES: Readonly<Record<Chipset, Places>> = {
  q35: {
    max: MAX_ROOT_PORTS - SPARE_ROOT_PORTS,
    expected: 'must be 0000:<bus>:00.0 with a bus from 01 to 20 (hexadecimal), which is behind a root port',
    has: (bus, slot) => slot === 0 && bus >= 1 && bus <= MAX_ROOT_PORTS,
  },
  i440fx: {
    max: LAST_SLOT - FIRST_SLOT + 1 - TAKEN_SLOTS,
    expected: 'must be 0000:00:<slot>.0 with a slot from 02 to 1f (hexadecimal)',
    has: (bus, slot) => bus === 0 && slot >= FIRST_SLOT && slot <= LAST_SLOT,
  },
};

export function checkPciAddresses(spec: VmiSpec, path: string, configuration: Configuration): FieldError[] {
  const { disks = [], interfaces = [] } = spec.domain.devices ?? {};
  const chipset = chipsetOfSpec(spec, configuration);
  const places = PLACES[chipset ?? 'q35'];
  const field = `${path}.domain.devices`;
  const requested = [
    ...interfaces.map(({ pciAddress }, i) => ({ address: pciAddress, at: `${field}.interfaces[${i}].pciAddress` })),
    ...disks.map(({ disk }, i) => ({ address: disk?.pciAddress, at: `${field}.disks[${i}].disk.pciAddress` })),
  ];
  const seen = new Set<string>();
  const onRootBus =
    chipset === 'i440fx' ? [] : interfaces.filter(({ model }) => model !== undefined && isConventional(model));
  const errors = checkConventional(onRootBus, interfaces, field);
  for (const { address, at } of requested) {
    if (address === undefined || address === '') continue;
    const key = address.toLowerCase();
    if (!isPlace(key, places)) errors.push(invalidValue(at, address, places.expected));
    else if (seen.has(key)) errors.push(duplicateValue(at, address));
    seen.add(key);
  }
  // An absent interface keeps its place; an unplugged disk does not.
  const virtio = disks.filter((disk) => isPlugged(disk) && busOf(disk, chipset) === 'virtio').length;
  const count = interfacesOf(spec).length - onRootBus.length + virtio;
  const max = places.max - (chipset === 'i440fx' ? countOtherSlots(spec) : 0);
  if (count > max) {
    const text = `there are ${count} interfaces and virtio disks; at most ${max} are possible; use the scsi bus for disks`;
    errors.push(forbiddenField(field, text));
  }
  return errors;
}

/** Conventional interfaces on q35 are limited in number, and their addresses cannot be chosen. */
function checkConventional(
  onRootBus: readonly Interface[],
  interfaces: readonly Interface[],
  field: string,
): FieldError[] {
  const errors = onRootBus.flatMap((nic) => {
    const at = `${field}.interfaces[${interfaces.indexOf(nic)}].pciAddress`;
    const text = `not supported for the model ${nic.model} on q35, which is on the root bus; its address is assigned automatically`;
    return nic.pciAddress ? [forbiddenField(at, text)] : [];
  });
  const ninth = onRootBus[MAX_CONVENTIONAL];
  if (ninth === undefined) return errors;
  const text = `a q35 guest can have at most ${MAX_CONVENTIONAL} interfaces of the models e1000, rtl8139, ne2k_pci and pcnet`;
  return [...errors, invalidValue(`${field}.interfaces[${interfaces.indexOf(ninth)}].model`, ninth.model, text)];
}

/** Returns the number of i440fx slots that other devices of the spec use. */
function countOtherSlots({ domain: { devices = {} } }: VmiSpec): number {
  const { sound, watchdog } = devices;
  const inputs = inputsOf(devices).filter(({ bus }) => bus === 'virtio').length;
  return [sound, watchdog].filter((device) => device !== undefined).length + inputs + (needsUsb(devices) ? 1 : 0);
}

function isPlace(address: string, places: Places): boolean {
  const [, domain, bus = '', slot = '', func] = PCI_ADDRESS.exec(address) ?? [];
  return domain === '0000' && func === '0' && places.has(Number.parseInt(bus, 16), Number.parseInt(slot, 16));
}
