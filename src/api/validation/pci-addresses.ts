/**
 * Places on PCI. On q35 there is one behind each root port, which the guest sees as bus 0x01 to 0x20, slot 0, function
 * 0; on i440fx each slot of bus 0 is one, but for those of the chipset itself. Which device stands where is decided by
 * node/definition; here only what can never work is refused.
 */
import { interfacesOf } from '#api/attached-interfaces.ts';
import type { Chipset } from '#api/chipset.ts';
import { isConventional, type Interface } from '#api/domain/interface.ts';
import { inputsOf, needsUsb } from '#api/fixtures.ts';
import type { Configuration } from '#api/kubevirt/configuration.ts';
import { chipsetOfSpec } from '#api/validation/chipset-of-spec.ts';
import { busOf, isPlugged } from '#api/disk-bus.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { duplicateValue, forbiddenField, invalidValue, type FieldError } from '#kube/field-error.ts';

export const MAX_ROOT_PORTS = 32;
/** Kept free, so that devices can be plugged in while the guest runs. */
export const SPARE_ROOT_PORTS = 4;
/** Of bus 0 on i440fx: below it are the chipset's own. */
const FIRST_SLOT = 0x02;
const LAST_SLOT = 0x1f;
/** Video, SCSI controller, balloon and RNG stand in slots, too; what else the spec asks for is counted. */
const TAKEN_SLOTS = 4;
/** Conventional interfaces on the root bus of q35, beside what else may have to stand there. */
const MAX_CONVENTIONAL = 8;

const PCI_ADDRESS = /^([0-9a-f]{4}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])$/i;

interface Places {
  /** How many interfaces and disks there can be. */
  readonly most: number;
  readonly expected: string;
  has(bus: number, slot: number): boolean;
}

const PLACES: Readonly<Record<Chipset, Places>> = {
  q35: {
    most: MAX_ROOT_PORTS - SPARE_ROOT_PORTS,
    expected: 'must be 0000:<bus>:00.0 with a bus from 01 to 20 (hexadecimal), which is behind a root port',
    has: (bus, slot) => slot === 0 && bus >= 1 && bus <= MAX_ROOT_PORTS,
  },
  i440fx: {
    most: LAST_SLOT - FIRST_SLOT + 1 - TAKEN_SLOTS,
    expected: 'must be 0000:00:<slot>.0 with a slot from 02 to 1f (hexadecimal)',
    has: (bus, slot) => bus === 0 && slot >= FIRST_SLOT && slot <= LAST_SLOT,
  },
};

export function checkPciAddresses(spec: VmiSpec, path: string, configuration: Configuration): FieldError[] {
  const { disks = [], interfaces = [] } = spec.domain.devices ?? {};
  const chipset = chipsetOfSpec(spec, configuration);
  const places = PLACES[chipset ?? 'q35'];
  const field = `${path}.domain.devices`;
  const asked = [
    ...interfaces.map(({ pciAddress }, i) => ({ address: pciAddress, at: `${field}.interfaces[${i}].pciAddress` })),
    ...disks.map(({ disk }, i) => ({ address: disk?.pciAddress, at: `${field}.disks[${i}].disk.pciAddress` })),
  ];
  const seen = new Set<string>();
  const onRootBus =
    chipset === 'i440fx' ? [] : interfaces.filter(({ model }) => model !== undefined && isConventional(model));
  const errors = checkConventional(onRootBus, interfaces, field);
  for (const { address, at } of asked) {
    if (address === undefined || address === '') continue;
    const key = address.toLowerCase();
    if (!isPlace(key, places)) errors.push(invalidValue(at, address, places.expected));
    else if (seen.has(key)) errors.push(duplicateValue(at, address));
    seen.add(key);
  }
  // An interface that is absent keeps its place, a disk that is not plugged has none.
  const virtio = disks.filter((disk) => isPlugged(disk) && busOf(disk, chipset) === 'virtio').length;
  const count = interfacesOf(spec).length - onRootBus.length + virtio;
  const most = places.most - (chipset === 'i440fx' ? slotsBesides(spec) : 0);
  if (count > most) {
    const text = `interfaces and disks on the bus virtio are ${count}, more than ${most}; use the bus scsi`;
    errors.push(forbiddenField(field, text));
  }
  return errors;
}

/** They stand where the machine has room, not where somebody names. */
function checkConventional(
  onRootBus: readonly Interface[],
  interfaces: readonly Interface[],
  field: string,
): FieldError[] {
  const errors = onRootBus.flatMap((nic) => {
    const at = `${field}.interfaces[${interfaces.indexOf(nic)}].pciAddress`;
    const text = `not for the model ${nic.model} on q35, which stands on the root bus, where the machine decides`;
    return nic.pciAddress ? [forbiddenField(at, text)] : [];
  });
  const ninth = onRootBus[MAX_CONVENTIONAL];
  if (ninth === undefined) return errors;
  const text = `a q35 guest has room for ${MAX_CONVENTIONAL} interfaces of the models e1000, rtl8139, ne2k_pci and pcnet`;
  return [...errors, invalidValue(`${field}.interfaces[${interfaces.indexOf(ninth)}].model`, ninth.model, text)];
}

/** Slots of an i440fx that other hardware of the spec takes. */
function slotsBesides({ domain: { devices = {} } }: VmiSpec): number {
  const { sound, watchdog } = devices;
  const inputs = inputsOf(devices).filter(({ bus }) => bus === 'virtio').length;
  return [sound, watchdog].filter((device) => device !== undefined).length + inputs + (needsUsb(devices) ? 1 : 0);
}

function isPlace(address: string, places: Places): boolean {
  const [, domain, bus = '', slot = '', func] = PCI_ADDRESS.exec(address) ?? [];
  return domain === '0000' && func === '0' && places.has(Number.parseInt(bus, 16), Number.parseInt(slot, 16));
}
