/**
 * The history of the tour's machine: complete where replaying it yields the record, and where it tells of every change
 * that the tour has made and of no other.
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

/** The last change is on record moments after the guest has booted. */
const PATIENCE_MS = 30_000;

/** Waits for the history to be complete, and throws TourError saying what is missing where it does not become so. */
export async function completeHistory(api: TourApi, machines: TourMachines): Promise<readonly HistoryEntry[]> {
  let fault: string | undefined = 'there is no identity record';
  const look = async () => {
    const record = await api.find(VIRTUAL_MACHINE_IDENTITIES, VM_NAME);
    if (record !== undefined) fault = historyFault(record, machines);
    return fault === undefined ? (record?.status?.history ?? []) : undefined;
  };
  try {
    return await waitFor(api, 'the history to be complete', look, { timeoutMs: PATIENCE_MS });
  } catch (error) {
    if (!(error instanceof TourError)) throw error;
    throw new TourError(`the history is not complete: ${fault}`, { cause: error });
  }
}

interface Expected {
  readonly cause: RegExp;
  readonly field: string;
  /** The value after the change; null where there is none, absent where it may be any. */
  readonly to?: unknown;
}

const START = /^the start of instance /;
const EDIT = /^edit of the VM$/;

/** In the order in which the tour does it. */
const expectedOf = ({ first, other }: TourMachines): readonly Expected[] => [
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

/** Returns what is wrong with the history of the record, or undefined where it is complete. */
export function historyFault(record: VirtualMachineIdentity, machines: TourMachines): string | undefined {
  const { history = [], recorded = {} } = record.status ?? {};
  let from = 0;
  for (const expected of expectedOf(machines)) {
    const at = history.findIndex((entry, index) => index >= from && tellsOf(entry, expected));
    if (at < 0) return `no entry records a change of ${expected.field} with the cause ${expected.cause.source}`;
    from = at;
  }
  if (history.some(({ changes = [] }) => changes.some(isLoss))) return 'the uuid or a MAC address changed';
  const replayed = history.reduce<IdentityState>(
    (state, entry) => replayChanges(state, entry.changes ?? []),
    new Map(),
  );
  const told = identityState(record.spec, record.status);
  if (!deepEqual(Object.fromEntries(replayed), Object.fromEntries(told)))
    return 'replaying it does not yield the record';
  return deepEqual(recorded, record.spec) ? undefined : 'it does not account for the spec';
}

function tellsOf({ cause = '', changes = [] }: HistoryEntry, expected: Expected): boolean {
  const isRight = ({ to = null }: IdentityChange) => (expected.to === undefined ? to !== null : to === expected.to);
  return expected.cause.test(cause) && changes.some((change) => change.field === expected.field && isRight(change));
}

/** The tour changes neither. */
const isLoss = ({ field, from }: IdentityChange) =>
  from !== undefined && (field === 'firmware.uuid' || field.endsWith('.macAddress'));
