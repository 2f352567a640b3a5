/**
 * The entries that a write of the record's status adds to its history: every difference between what the history accounts
 * for and what the record says next. The spec is written by controllers/vm, in a write of its own; `status.recorded` is
 * the spec as of the last entry, so that no crash between the two writes loses one. Pure.
 */
import { identityChanges, identityState, type IdentityState } from '#api/identity-changes.ts';
import { type Cause, historyEntries, textOf } from '#api/identity-history.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type {
  HistoryEntry,
  IdentityChange,
  IdentityStatus,
  VirtualMachineIdentity,
} from '#api/virtual-machine-identity/kind.ts';
import { causeOfLoss, causesOf } from '#controllers/device-map/change-cause.ts';
import { type DeviceMapWorld, ownInstance } from '#controllers/device-map/device-map-world.ts';
import { handedOverClaim } from '#controllers/device-map/state-claim.ts';
import type { SnapshotIdentity } from '#api/virtual-machine-snapshot-content/kind.ts';
import type { RecordedInSnapshot } from '#api/virtual-machine-identity/record-state.ts';
import type { Stored } from '#kube/meta.ts';

export interface Occasion {
  readonly occasion: Cause;
  readonly summary?: string;
  /** The snapshot from which the record is rebuilt: its history goes on. */
  readonly snapshot?: RecordedInSnapshot | undefined;
}

export function entriesFor(
  world: DeviceMapWorld,
  vm: Stored<VirtualMachine>,
  next: IdentityStatus,
  { occasion, summary, snapshot }: Occasion,
): HistoryEntry[] {
  const { identity, now } = world;
  const past = pastOf(identity, snapshot);
  const { history = [], devices } = past.status ?? {};
  const after = identityState(identity.spec, next);
  const changes = identityChanges(accountedState(past, next), after);
  const isNew = history.length === 0 && devices === undefined;
  const isFirstSeen = devices === undefined;
  const instance = ownInstance(world)?.metadata.uid;
  const loss = causeOfLoss(world, vm);
  const context = { vm, history, isNew, isFirstSeen, occasion, instance, loss, handOver: handOverOf(world) };
  const causeOf = causesOf(context, changes);
  const caused = changes.map((change) => ({ change, cause: atStart(causeOf(change), occasion) }));
  const isSummed = (part: readonly IdentityChange[]) => part.some(({ field }) => field.startsWith('devices.'));
  const entries = historyEntries(now, caused, (part) =>
    summary !== undefined && isSummed(part) ? summary : textOf(part),
  );
  // The record was away, although nothing in it has changed.
  return snapshot === undefined ? entries : [{ at: now, what: summary ?? '', ...occasion, changes: [] }, ...entries];
}

/**
 * Returns the record whose history goes on. A record that was made anew continues that of the snapshot; a record that has
 * entries from before the snapshot has lost only its devices, and continues its own.
 */
export function pastOf(identity: VirtualMachineIdentity, snapshot: RecordedInSnapshot | undefined): SnapshotIdentity {
  if (snapshot === undefined) return identity;
  const hasOwnPast = identity.status?.history?.some(({ at = '' }) => at <= snapshot.takenAt) === true;
  return hasOwnPast ? identity : snapshot.identity;
}

/** Adds the instance whose start shows a change to its cause, also where somebody asked for the change before. */
function atStart(cause: Cause, { instance }: Cause): Cause {
  return instance === undefined ? cause : { ...cause, instance };
}

/**
 * Returns the state that the history leads to. Records of versions that did not account for the spec begin with the spec
 * and the claim that they have now.
 */
function accountedState(record: SnapshotIdentity, next: IdentityStatus): IdentityState {
  const { recorded, history, devices, ...status } = record.status ?? {};
  if (recorded !== undefined) return identityState(recorded, { ...status, devices });
  if (history === undefined && devices === undefined) return identityState({}, status);
  return identityState(record.spec ?? {}, { ...status, devices, stateClaim: next.stateClaim });
}

function handOverOf(world: DeviceMapWorld): { readonly claim: string; readonly migration: string } | undefined {
  const claim = handedOverClaim(world);
  if (claim === undefined) return undefined;
  const { migrationUid = '' } = ownInstance(world)?.status?.migrationState ?? {};
  return { claim, migration: world.migrationName ?? migrationUid };
}
