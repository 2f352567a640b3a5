/**
 * Checks the identity history of the tour's VM. It is complete if replaying it yields the record, and if it contains every
 * change of the tour and no other.
 */
import { buildIdentityState, replayChanges, type IdentityState } from '#api/identity/identity-changes.ts';
import {
  type HistoryEntry,
  type IdentityChange,
  VIRTUAL_MACHINE_IDENTITIES,
  type VirtualMachineIdentity,
} from '#api/virtual-machine-identity/kind.ts';
import type { TourMachines } from '#cli/tour/machine-types.ts';
import { TourError, waitFor, type TourApi } from '#cli/tour/tour-api.ts';
import { INTERFACE, MIGRATION, PLUGGED, RESTORE, VM_NAME, type TourEdits } from '#cli/tour/tour-vm.ts';
import { deepEqual } from '#kube/deep.ts';

/** The last change is recorded shortly after the guest has booted. */
const TIMEOUT_MS = 30_000;

interface TourHistory {
  readonly history: readonly HistoryEntry[];
  /** The reason why the history is not what the tour expects; absent if it is. */
  readonly problem?: string;
}

/** Waits for a while until the history contains all expected changes, and returns it. */
export async function readHistory(api: TourApi, expected: readonly ExpectedChange[]): Promise<TourHistory> {
  let last: TourHistory = { history: [], problem: 'there is no identity record' };
  const poll = async () => {
    const record = await api.find(VIRTUAL_MACHINE_IDENTITIES, VM_NAME);
    if (record === undefined) return undefined;
    const problem = findHistoryError(record, expected);
    last = { history: record.status?.history ?? [], ...(problem !== undefined && { problem }) };
    return problem === undefined ? last : undefined;
  };
  try {
    return await waitFor(api, 'the history to be complete', poll, { timeoutMs: TIMEOUT_MS });
  } catch (error) {
    if (!(error instanceof TourError)) throw error;
    return last;
  }
}

/** A change that the history must contain. */
interface ExpectedChange {
  readonly cause: RegExp;
  readonly field: string;
  /** The value after the change; null = removed, undefined = any value. */
  readonly to?: unknown;
}

const START = /^the start of instance /;
const EDIT = /^edit of the VM$/;
const IMPORT = /^the import of the VM$/;
const MAC = `interfaces.${INTERFACE}.macAddress`;

/** Returns the changes of the tour before its import, in their order. */
export const changesOfTour = (
  { first, other }: TourMachines,
  { uuid, serial, macAddress }: TourEdits,
): readonly ExpectedChange[] => [
  { cause: /^first start$/, field: 'firmware.uuid' },
  { cause: START, field: 'machine.type', to: first },
  { cause: START, field: 'devices.disk-data' },
  { cause: EDIT, field: `devices.disk-${PLUGGED}` },
  { cause: EDIT, field: `devices.disk-${PLUGGED}`, to: null },
  { cause: new RegExp(`^migration ${MIGRATION}$`), field: 'stateClaim' },
  { cause: new RegExp(`^VirtualMachineRestore ${RESTORE} `), field: 'stateClaim' },
  { cause: EDIT, field: 'firmware.uuid', to: uuid },
  { cause: EDIT, field: 'firmware.serial', to: serial },
  { cause: EDIT, field: MAC, to: macAddress },
  { cause: /^transition by Job /, field: 'machine.type', to: other },
];

/** Returns the changes with which the record of the imported VM begins. */
export const changesOfImport = (
  { other }: TourMachines,
  { uuid, serial, macAddress }: TourEdits,
): readonly ExpectedChange[] => [
  { cause: IMPORT, field: 'firmware.uuid', to: uuid },
  { cause: IMPORT, field: 'firmware.serial', to: serial },
  { cause: IMPORT, field: MAC, to: macAddress },
  { cause: IMPORT, field: 'machine.type', to: other },
  { cause: IMPORT, field: 'devices.disk-data' },
];

/** Returns what is wrong with the history of the record, or undefined if it is complete. */
export function findHistoryError(
  record: VirtualMachineIdentity,
  expectedChanges: readonly ExpectedChange[],
): string | undefined {
  const { history = [], recorded = {} } = record.status ?? {};
  let from = 0;
  for (const expected of expectedChanges) {
    const at = history.findIndex((entry, index) => index >= from && matchesEntry(entry, expected));
    if (at < 0) return `no entry records a change of ${expected.field} with the cause ${expected.cause.source}`;
    from = at;
  }
  const isExpected = ({ field, to }: IdentityChange) =>
    expectedChanges.some((expected) => expected.field === field && expected.to === to);
  const isLoss = (change: IdentityChange) => isReplaced(change) && !isExpected(change);
  if (history.some(({ changes = [] }) => changes.some(isLoss))) return 'the uuid or a MAC address changed unasked';
  const replayed = history.reduce<IdentityState>(
    (state, entry) => replayChanges(state, entry.changes ?? []),
    new Map(),
  );
  const current = buildIdentityState(record.spec, record.status);
  if (!deepEqual(Object.fromEntries(replayed), Object.fromEntries(current)))
    return 'replaying it does not yield the record';
  return deepEqual(recorded, record.spec) ? undefined : 'it does not account for the spec';
}

function matchesEntry({ cause = '', changes = [] }: HistoryEntry, expected: ExpectedChange): boolean {
  const isRight = ({ to = null }: IdentityChange) => (expected.to === undefined ? to !== null : to === expected.to);
  return expected.cause.test(cause) && changes.some((change) => change.field === expected.field && isRight(change));
}

/** Reports whether a uuid or a MAC address was replaced. */
const isReplaced = ({ field, from }: IdentityChange) =>
  from !== undefined && (field === 'firmware.uuid' || field.endsWith('.macAddress'));
