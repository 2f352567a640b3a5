/** What is known of a VM's devices before it starts: the rows of its identity record, or of the import that brought it. */
import { AGENT_PORT_NAME } from '#api/agent-channel.ts';
import { chipsetOf, type Chipset } from '#api/chipset.ts';
import { isRootPort, type LearnedDevice } from '#api/learned-device.ts';
import type { IdentityStatus } from '#api/virtual-machine-identity/kind.ts';

export interface KnownDevices {
  /** The machine type that they stood in. Absent: as the one that starts now. */
  readonly machine?: string | undefined;
  readonly devices: readonly LearnedDevice[];
  /** Whether they come from another manager and the guest has not run here yet. */
  readonly imported?: boolean;
  /** They are all that the guest has: nothing comes with a first start by itself, even if there is no row. */
  readonly complete?: boolean;
}

export const NOTHING_KNOWN: KnownDevices = { devices: [] };

/** What the record of a VM has. */
export function knownFrom({ machine, devices, freed = [], learnedAt }: IdentityStatus): KnownDevices {
  if (devices === undefined) return NOTHING_KNOWN;
  // What nobody has learned here was brought along.
  const imported = learnedAt === undefined && devices.length > 0;
  return { machine: machine?.type, devices: [...devices, ...leftAlone(freed, devices)], imported };
}

/** Places of devices that are gone, as rows that nobody wants: who returns finds its own. */
function leftAlone(freed: readonly LearnedDevice[], devices: readonly LearnedDevice[]): LearnedDevice[] {
  const ids = new Set(devices.map(({ id }) => id));
  return freed.map(({ name: _gone, ...row }) => (ids.has(row.id) ? { ...row, id: `freed-${row.id}` } : row));
}

/** Devices that every guest has at most one of, under our own id, whatever id they came with. */
const OWN: readonly { readonly id: string; is(row: LearnedDevice): boolean }[] = [
  { id: 'scsi0', is: (row) => row.type === 'controller' && (row.device === 'virtio-scsi' || isVirtioScsi(row)) },
  { id: 'balloon0', is: ({ type }) => type === 'balloon' },
  { id: 'rng0', is: ({ type }) => type === 'rng' },
  { id: 'agent0', is: ({ type, specParams }) => type === 'channel' && specParams?.['name'] === AGENT_PORT_NAME },
];

/** As libvirt names it. */
function isVirtioScsi({ device, specParams }: LearnedDevice): boolean {
  return device === 'scsi' && specParams?.['model'] === 'virtio-scsi';
}

/**
 * The rows as a guest of this chipset can take them: each id once, empty addresses left out, and where the chipset is
 * another one, all of them, because they say nothing there.
 */
export function rowsFor({ machine, devices }: KnownDevices, chipset: Chipset): readonly LearnedDevice[] {
  const before = chipsetOf(machine);
  const isMoved = before !== undefined && before !== chipset;
  const rows = new Map<string, LearnedDevice>();
  for (const row of withOwnIds(devices)) {
    if (rows.has(row.id) || (isMoved && isRootPort(row))) continue;
    const { address, ...rest } = row;
    const hasPlace = !isMoved && address !== undefined && Object.keys(address).length > 0;
    rows.set(row.id, hasPlace ? row : rest);
  }
  return [...rows.values()];
}

function withOwnIds(devices: readonly LearnedDevice[]): readonly LearnedDevice[] {
  const ids = new Set(devices.map(({ id }) => id));
  const foreign = new Map(
    OWN.filter(({ id }) => !ids.has(id)).flatMap(({ id, is }) => {
      const row = devices.find(is);
      return row === undefined ? [] : [[row, id] as const];
    }),
  );
  return foreign.size === 0 ? devices : devices.map((row) => ({ ...row, id: foreign.get(row) ?? row.id }));
}
