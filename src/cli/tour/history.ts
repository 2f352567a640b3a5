/**
 * Checks the identity history of the tour's VM. It is complete if replaying it yields the record, and if it contains every
 * change of the tour and no other.
 */
import { identityState, replayChanges, type IdentityState } from '#api/identity-changes.ts';
import {
  type HistoryEntry,
  type IdentityChange,
  VIRTUAL_MACHINE_IDENTITIES,
  type VirtualMachineIdentity,
} from '#api/virtual-machine-identity/kind.ts';
import type { TourMachines } from '#cli/tour/machine-types.ts';
import { waitFor, type TourApi } from '#cli/tour/tour-api.ts';
import { TourError } from '#cli/tour/tour-error.ts';
import { MIGRATION, PLUGGED, RESTORE, SERIAL, VM_NAME } from '#cli/tour/tour-vm.ts';
import { deepEqual } from '#kube/deep.ts';

/** The last change is recorded shortly after the guest has booted. */
const TIMEOUT_MS = 30_000;

/** Waits until the history is complete and returns it. Throws TourError with what is missing. */
export async function waitForHistory(api: TourApi, machines: TourMachines): Promise<readonly HistoryEntry[]> {
  let problem: string | undefined = 'there is no identity record';
  const check = async () => {
    const record = await api.find(VIRTUAL_MACHINE_IDENTITIES, VM_NAME);
    if (record !== undefined) problem = findHistoryError(record, machines);
    return problem === undefined ? (record?.status?.history ?? []) : undefined;
  };
  try {
    return await waitFor(api, 'the history to be complete', check, { timeoutMs: TIMEOUT_MS });
  } catch (error) {
    if (!(error instanceof TourError)) throw error;
    throw new TourError(`the history is not complete: ${problem}`, { cause: error });
  }
}

interface ExpectedEntry {
  readonly cause: RegExp;
  readonly field: string;
  /** The value after the change; null = removed, undefined = any value. */
  readonly to?: unknown;
}

const START = /^the start of instance /;
const EDIT = /^edit of the VM$/;

/** The changes of the tour, in order. */
const expectedEntries = ({ first, other }: TourMachines): readonly ExpectedEntry[] => [
  { cause: /^first start$/, field: 'firmware.uuid' },
  { cause: START, field: 'machine.type', to: first },
  { cause: START, field: 'devices.disk-data' },
  { cause: EDIT, field: `devices.disk-${PLUGGED}` },
  { cause: EDIT, field: `devices.disk-${PLUGGED}`, to: null },
  { cause: new RegExp(`^migration ${MIGRATION}$`), field: 'stateClaim' },
  { cause: new RegExp(`^VirtualMachineRestore ${RESTORE} `), field: 'stateClaim' },
  { cause: EDIT, field: 'firmware.serial', to: SERIAL },
  { cause: EDIT, field: 'machine.type', to: other },
];

/** Returns what is wrong with the history of a record, or undefined if it is complete. */
export function findHistoryError(record: VirtualMachineIdentity, machines: TourMachines): string | undefined {
  const { history = [], recorded = {} } = record.status ?? {};
  let from = 0;
  for (const expected of expectedEntries(machines)) {
    const at = history.findIndex((entry, index) => index >= from && matchesEntry(entry, expected));
    if (at < 0) return `no entry records a change of ${expected.field} with the cause ${expected.cause.source}`;
    from = at;
  }
  if (history.some(({ changes = [] }) => changes.some(isIdentityLoss))) return 'the uuid or a MAC address changed';
  const replayed = history.reduce<IdentityState>(
    (state, entry) => replayChanges(state, entry.changes ?? []),
    new Map(),
  );
  const current = identityState(record.spec, record.status);
  if (!deepEqual(Object.fromEntries(replayed), Object.fromEntries(current)))
    return 'replaying it does not yield the record';
  return deepEqual(recorded, record.spec) ? undefined : 'it does not account for the spec';
}

function matchesEntry({ cause = '', changes = [] }: HistoryEntry, expected: ExpectedEntry): boolean {
  const isRight = ({ to = null }: IdentityChange) => (expected.to === undefined ? to !== null : to === expected.to);
  return expected.cause.test(cause) && changes.some((change) => change.field === expected.field && isRight(change));
}

/** Reports a change of the uuid or a MAC address, which the tour never changes. */
const isIdentityLoss = ({ field, from }: IdentityChange) =>
  from !== undefined && (field === 'firmware.uuid' || field.endsWith('.macAddress'));
