/**
 * Every disk and interface at its address. Interfaces and virtio disks are plugged into root ports, other disks are
 * units of their controller; allocate.ts decides which.
 */
import type { LearnedDevice } from '#api/learned-device.ts';
import { invalidValue, type FieldError } from '#kube/field-error.ts';
import { allocate, type Places, type Want } from '#node/definition/addresses/allocate.ts';
import { driveAddress, unitOf } from '#node/definition/addresses/drive-address.ts';
import {
  behindPort,
  MAX_PORTS,
  portCount,
  portOf,
  SATA_UNITS,
  SCSI_UNITS,
} from '#node/definition/addresses/layout-q35.ts';
import {
  parsePciAddress,
  pciAddressFromMap,
  pciAddressToMap,
  printPciAddress,
} from '#node/definition/addresses/pci-address.ts';
import type { DiskDevice, InterfaceDevice } from '#node/definition/domain-definition.ts';

type Placeable = DiskDevice | InterfaceDevice;

/** A device that is complete but for its address. */
export interface Unplaced<T extends Placeable = Placeable> {
  readonly device: T;
  readonly field: string;
  /** As the spec has it. */
  readonly pciAddress?: string | undefined;
}

export interface Placement {
  readonly devices: readonly Placeable[];
  readonly ports: number;
}

type Stand = 'port' | 'sata' | 'scsi';

const PORTS: Places = { noun: 'PCI port', count: MAX_PORTS, print: (port) => printPciAddress(behindPort(port)) };
const SATA: Places = { noun: 'SATA unit', count: SATA_UNITS, print: String };
const SCSI: Places = { noun: 'SCSI unit', count: SCSI_UNITS, print: String };

/** `unplaced` in the order of the spec, interfaces first: whoever has no place yet gets one in this order. */
export function placeDevices(
  unplaced: readonly Unplaced[],
  known: readonly LearnedDevice[],
  problems: FieldError[],
): Placement {
  const wantsOf = (stand: Stand) => unplaced.filter(({ device }) => standOf(device) === stand);
  const elsewhere = (stand: Stand) =>
    new Set(unplaced.filter(({ device }) => standOf(device) !== stand).map(({ device }) => device.id));
  const assign = (stand: Stand, wants: readonly Want[], kind: Places) => {
    const allocation = allocate(wants, recordedPlaces(known, stand, elsewhere(stand)), kind);
    problems.push(...allocation.problems);
    return allocation.places;
  };

  problems.push(...wantsOf('port').flatMap((want) => strayProblems(want, known)));
  const ports = assign(
    'port',
    wantsOf('port').map((want) => portWant(want, problems)),
    PORTS,
  );
  const units = new Map([
    ...assign('sata', wantsOf('sata').map(plainWant), SATA),
    ...assign('scsi', wantsOf('scsi').map(plainWant), SCSI),
  ]);

  const addressOf = ({ id }: Placeable) => {
    const port = ports.get(id);
    if (port !== undefined) return { address: pciAddressToMap(behindPort(port)) };
    const unit = units.get(id);
    return unit === undefined ? {} : { address: driveAddress(unit) };
  };
  const taken = new Set([...ports.values(), ...recordedPlaces(known, 'port', elsewhere('port')).values()]);
  const portsBefore = known.filter(({ device }) => device === 'pcie-root-port').length;
  return {
    devices: unplaced.map(({ device }) => ({ ...device, ...addressOf(device) })),
    ports: portCount(taken, portsBefore),
  };
}

function standOf(device: Placeable): Stand {
  return device.type === 'interface' || device.bus === 'virtio' ? 'port' : device.bus;
}

/**
 * Places that the record names, but for those of devices that now stand elsewhere. A drive address does not say on
 * which controller: that of a disk that is gone is left alone on both.
 */
function recordedPlaces(
  known: readonly LearnedDevice[],
  stand: Stand,
  elsewhere: ReadonlySet<string>,
): ReadonlyMap<string, number> {
  const recorded = new Map<string, number>();
  for (const { id, address } of known) {
    if (address === undefined || elsewhere.has(id) || recorded.has(id)) continue;
    const pci = stand === 'port' ? pciAddressFromMap(address) : undefined;
    const place = stand === 'port' ? pci && portOf(pci) : unitOf(address);
    if (place !== undefined) recorded.set(id, place);
  }
  return recorded;
}

function plainWant({ device, field }: Unplaced): Want {
  return { id: device.id, field };
}

function portWant(want: Unplaced, problems: FieldError[]): Want {
  const { device, field, pciAddress } = want;
  if (pciAddress === undefined || pciAddress === '') return plainWant(want);
  const pinField = `${field}.${device.type === 'disk' ? 'disk.' : ''}pciAddress`;
  const address = parsePciAddress(pciAddress);
  const place = address && portOf(address);
  if (place === undefined) {
    const detail = `must be one of ${PORTS.print(0)} to ${PORTS.print(MAX_PORTS - 1)} (slot and function are 0)`;
    problems.push(invalidValue(pinField, pciAddress, detail));
    return plainWant(want);
  }
  return { id: device.id, field, pinned: { place, field: pinField } };
}

/** A recorded PCI address that is behind no port of ours cannot be given back; to move the device would be worse. */
function strayProblems({ device, field, pciAddress }: Unplaced, known: readonly LearnedDevice[]): FieldError[] {
  const address = known.find(({ id }) => id === device.id)?.address;
  if (pciAddress !== undefined || address === undefined || address['type'] !== 'pci') return [];
  const pci = pciAddressFromMap(address);
  if (pci !== undefined && portOf(pci) !== undefined) return [];
  const place = pci === undefined ? JSON.stringify(address) : printPciAddress(pci);
  return [invalidValue(field, place, 'the recorded address has no place in the layout of this machine type')];
}
