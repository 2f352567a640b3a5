/** The devices of a VM that are known before it starts: the rows of its identity record or of its import. */
import { AGENT_PORT_NAME } from '#api/devices/agent-channel.ts';
import { chipsetOf, type Chipset } from '#api/devices/chipset.ts';
import { isRootPort, type LearnedDevice } from '#api/devices/learned-device.ts';
import type { IdentityStatus } from '#api/virtual-machine-identity/kind.ts';

interface KnownDevice extends LearnedDevice {
  /** Set if the device is gone, and the row only reserves its place. */
  readonly gone?: true;
}

export interface KnownDevices {
  /** The machine type at the time of the record. Absent: the one that starts now. */
  readonly machine?: string | undefined;
  readonly devices: readonly KnownDevice[];
  /** True if the rows come from another manager and the guest has not run here yet. */
  readonly imported?: boolean;
  /** True if the guest has exactly these devices: a first start adds none of the default devices. */
  readonly complete?: boolean;
}

export const NOTHING_KNOWN: KnownDevices = { devices: [] };

/** Reads the devices from the identity record of a VM. */
export function readKnownDevices({ machine, devices, freed = [], learnedAt }: IdentityStatus): KnownDevices {
  if (devices === undefined) return NOTHING_KNOWN;
  // Devices that were never learned here come from an import.
  const imported = learnedAt === undefined && devices.length > 0;
  return { machine: machine?.type, devices: [...devices, ...reserveFreedPlaces(freed, devices)], imported };
}

/** Returns rows that reserve the places of devices that are gone, so that a device that returns gets its place back. */
function reserveFreedPlaces(freed: readonly LearnedDevice[], devices: readonly LearnedDevice[]): KnownDevice[] {
  const ids = new Set(devices.map(({ id }) => id));
  return freed.map(({ name: _gone, ...row }) => ({
    ...row,
    gone: true,
    ...(ids.has(row.id) && { id: `freed-${row.id}` }),
  }));
}

/** Reports whether the row only reserves the place of a device that is gone. */
export function isGone({ gone }: KnownDevice): boolean {
  return gone === true;
}

/** Reports whether the row is of a device that is only unplugged: its place stays its own, and the port before it exists. */
export function isUnplugged(row: KnownDevice): boolean {
  return row.plugged === false && !isGone(row);
}

/** Sorts rows by their claim to a place: of plugged devices, of devices that are unplugged, of devices that are gone. */
export function byClaim(rows: readonly KnownDevice[]): KnownDevice[] {
  const rank = (row: KnownDevice) => (isGone(row) ? 2 : row.plugged === false ? 1 : 0);
  return rows.toSorted((a, b) => rank(a) - rank(b));
}

/** Devices of which a guest has at most one. They get our own id, whatever id the record has. */
const SINGLETONS: readonly { readonly id: string; is(row: LearnedDevice): boolean }[] = [
  { id: 'scsi0', is: (row) => row.type === 'controller' && (row.device === 'virtio-scsi' || isVirtioScsi(row)) },
  { id: 'balloon0', is: ({ type }) => type === 'balloon' },
  { id: 'rng0', is: ({ type }) => type === 'rng' },
  { id: 'agent0', is: ({ type, specParams }) => type === 'channel' && specParams?.['name'] === AGENT_PORT_NAME },
];

/** Recognizes libvirt's name of the controller. */
function isVirtioScsi({ device, specParams }: LearnedDevice): boolean {
  return device === 'scsi' && specParams?.['model'] === 'virtio-scsi';
}

/**
 * Returns the rows for a guest of this chipset: each id once and without empty addresses. If the record is of another
 * chipset, all addresses and root ports are dropped, because they have no meaning there.
 */
export function rowsFor({ machine, devices }: KnownDevices, chipset: Chipset): readonly KnownDevice[] {
  const recordedChipset = chipsetOf(machine);
  const isOtherChipset = recordedChipset !== undefined && recordedChipset !== chipset;
  const rows = new Map<string, KnownDevice>();
  for (const row of assignSingletonIds(devices)) {
    if (rows.has(row.id) || (isOtherChipset && isRootPort(row))) continue;
    const { address, ...rest } = row;
    const hasPlace = !isOtherChipset && address !== undefined && Object.keys(address).length > 0;
    rows.set(row.id, hasPlace ? row : rest);
  }
  return [...rows.values()];
}

function assignSingletonIds(devices: readonly KnownDevice[]): readonly KnownDevice[] {
  const ids = new Set(devices.map(({ id }) => id));
  const foreign = new Map(
    SINGLETONS.filter(({ id }) => !ids.has(id)).flatMap(({ id, is }) => {
      const row = devices.find(is);
      return row === undefined ? [] : [[row, id] as const];
    }),
  );
  return foreign.size === 0 ? devices : devices.map((row) => ({ ...row, id: foreign.get(row) ?? row.id }));
}
