/**
 * Builds the entries that a write of the status of a record adds to its history: all changes since the last entry.
 * controllers/vm writes the spec separately; `status.recorded` is the spec as of the last entry, so that a crash
 * between the two writes loses no entry. Pure.
 */
import { diffIdentityStates, buildIdentityState, type IdentityState } from '#api/identity/identity-changes.ts';
import { type ChangeCause, buildHistoryEntries, renderSummary } from '#api/identity/identity-history.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type {
  HistoryEntry,
  IdentityChange,
  IdentityStatus,
  VirtualMachineIdentity,
} from '#api/virtual-machine-identity/kind.ts';
import { lossCause, createCauseFinder } from '#controllers/device-map/change-cause.ts';
import { type DeviceMapWorld, ownInstance } from '#controllers/device-map/device-map-world.ts';
import { handedOverClaim } from '#controllers/device-map/state-claim.ts';
import type { SnapshotIdentity } from '#api/virtual-machine-snapshot-content/kind.ts';
import type { SnapshotRecord } from '#api/virtual-machine-identity/record-state.ts';
import type { Stored } from '#kube/meta.ts';

/** The event during which changes are recorded. */
interface Occasion {
  readonly occasion: ChangeCause;
  readonly summary?: string;
  /** The snapshot from which the record is rebuilt; its history is continued. */
  readonly snapshot?: SnapshotRecord | undefined;
}

export function buildRecordEntries(
  world: DeviceMapWorld,
  vm: Stored<VirtualMachine>,
  next: IdentityStatus,
  { occasion, summary, snapshot }: Occasion,
): HistoryEntry[] {
  const { identity, now } = world;
  const past = previousRecord(identity, snapshot);
  const { history = [], devices } = past.status ?? {};
  const after = buildIdentityState(identity.spec, next);
  const changes = diffIdentityStates(accountedState(past, next), after);
  const isNew = history.length === 0 && devices === undefined;
  const isFirstSeen = devices === undefined;
  const instance = ownInstance(world)?.metadata.uid;
  const loss = lossCause(world, vm);
  const context = { vm, history, isNew, isFirstSeen, occasion, instance, loss, handOver: handOverOf(world) };
  const causeOf = createCauseFinder(context, changes);
  const caused = changes.map((change) => ({ change, cause: withInstance(causeOf(change), occasion) }));
  const hasDevices = (part: readonly IdentityChange[]) => part.some(({ field }) => field.startsWith('devices.'));
  const entries = buildHistoryEntries(now, caused, (part) =>
    summary !== undefined && hasDevices(part) ? summary : renderSummary(part),
  );
  // The loss of the record is an entry even if its content has not changed.
  return snapshot === undefined ? entries : [{ at: now, what: summary ?? '', ...occasion, changes: [] }, ...entries];
}

/**
 * Returns the record whose history is continued. A record that was created again continues that of the snapshot; a
 * record with entries from before the snapshot has lost only its devices and continues its own.
 */
export function previousRecord(
  identity: VirtualMachineIdentity,
  snapshot: SnapshotRecord | undefined,
): SnapshotIdentity {
  if (snapshot === undefined) return identity;
  const hasOwnHistory = identity.status?.history?.some(({ at = '' }) => at <= snapshot.takenAt) === true;
  return hasOwnHistory ? identity : snapshot.identity;
}

/** Adds the instance whose start revealed the change to its cause, even if a user requested the change before. */
function withInstance(cause: ChangeCause, { instance }: ChangeCause): ChangeCause {
  return instance === undefined ? cause : { ...cause, instance };
}

/**
 * Returns the state after the last entry of the history. Records of versions that did not record the spec start with
 * their current spec and claim.
 */
function accountedState(record: SnapshotIdentity, next: IdentityStatus): IdentityState {
  const { recorded, history, devices, ...status } = record.status ?? {};
  if (recorded !== undefined) return buildIdentityState(recorded, { ...status, devices });
  if (history === undefined && devices === undefined) return buildIdentityState({}, status);
  return buildIdentityState(record.spec ?? {}, { ...status, devices, stateClaim: next.stateClaim });
}

function handOverOf(world: DeviceMapWorld): { readonly claim: string; readonly migration: string } | undefined {
  const claim = handedOverClaim(world);
  if (claim === undefined) return undefined;
  const { migrationUid = '' } = ownInstance(world)?.status?.migrationState ?? {};
  return { claim, migration: world.migrationName ?? migrationUid };
}
