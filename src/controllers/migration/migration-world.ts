/**
 * The world of one migration. Earlier decisions are in the migration's own status (migrationState), which is written
 * before they are carried out; the instance gets a copy of it when the migration is announced to the agents.
 */
import type { Configuration } from '#api/kubevirt/configuration.ts';
import type { MigrationProgress, MigrationState } from '#api/migration/migration-state.ts';
import {
  isFinalPhase,
  MIGRATION_PHASES,
  type MigrationPhase,
  type VirtualMachineInstanceMigration,
} from '#api/virtual-machine-instance-migration/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { currentLauncherName } from '#controllers/shared/launcher/find-launchers.ts';
import type { ResourcePolicy } from '#controllers/shared/launcher/launcher-resources.ts';
import type { ClaimView } from '#controllers/shared/launcher/claim-views.ts';
import type { PersistentVolume, PersistentVolumeClaim, Pod } from '#kube/core-kinds.ts';
import type { EventNote } from '#runtime/events.ts';
import type { Stored } from '#kube/meta.ts';

export type StoredMigration = Stored<VirtualMachineInstanceMigration>;
type Vmi = Stored<VirtualMachineInstance>;

export interface MigrationWorld {
  readonly migration: StoredMigration;
  /** The instance of the migration; not a later instance with the same name. */
  readonly vmi?: Vmi;
  /** The VM of the instance. */
  readonly vm?: Stored<VirtualMachine>;
  /** The pod that had the guest when the migration began. */
  readonly sourcePod?: Stored<Pod>;
  readonly targetPod?: Stored<Pod>;
  /** Claims that the instance names, by name. */
  readonly claims: ReadonlyMap<string, ClaimView>;
  /** The claims of the persistent state: the current one, and that for the target. */
  readonly sourceClaim?: Stored<PersistentVolumeClaim>;
  readonly targetClaim?: Stored<PersistentVolumeClaim>;
  /** Reports whether a claim with this name exists that another migration or a user created. */
  isClaimNameTaken(claimName: string): boolean;
  /** Returns the name of another instance that has not ended and uses the claim. */
  otherUserOf(claimName: string): string | undefined;
  /** Returns a VM that has the claim as a disk, or another VM whose status names it as its state. */
  otherVmOf(claimName: string): string | undefined;
  /** Volumes that are marked as incoming by this migration. */
  readonly incoming: readonly Stored<PersistentVolume>[];
  /** Other unfinished migrations of the same instance. */
  readonly others: readonly StoredMigration[];
  /** Finished migrations of the same instance. */
  readonly finished: readonly StoredMigration[];
  /** Number of other active migrations, in the cluster and from the source node. */
  readonly active: { readonly inCluster: number; readonly fromNode: number };
  readonly settings: Configuration['migrations'];
  /** Decides about the resources of the target pod. */
  readonly policy: ResourcePolicy;
  /** True if the source node has reported recently. */
  readonly isSourceResponding: boolean;
  /** True if the target node has reported recently. */
  readonly isTargetResponding: boolean;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export function migrationPhaseOf({ status }: Pick<VirtualMachineInstanceMigration, 'status'>): MigrationPhase {
  return status?.phase ?? 'Pending';
}

export function isMigrationFinished(migration: Pick<VirtualMachineInstanceMigration, 'status'>): boolean {
  return isFinalPhase(migration.status?.phase);
}

/** Reports whether the migration counts against the limits of parallel migrations. */
export function isMigrationActive(migration: Pick<VirtualMachineInstanceMigration, 'status'>): boolean {
  return migrationPhaseOf(migration) !== 'Pending' && !isMigrationFinished(migration);
}

export function phaseRank(phase: MigrationPhase): number {
  return MIGRATION_PHASES.indexOf(phase);
}

export function migrationStateOf({ migration }: Pick<MigrationWorld, 'migration'>): MigrationState {
  return migration.status?.migrationState ?? {};
}

/** Reports whether source and target are recorded. */
export function hasBegun(world: Pick<MigrationWorld, 'migration'>): boolean {
  return migrationStateOf(world).targetPod !== undefined;
}

/** Reports whether the migration belongs to this instance, not to an earlier one of the same name. */
export function isMigrationOf({ metadata, status }: StoredMigration, vmi: Vmi): boolean {
  const sourcePod = status?.migrationState?.sourcePod;
  return sourcePod === undefined || isAnnouncedTo(vmi, metadata.uid) || currentLauncherName(vmi) === sourcePod;
}

export function isAnnouncedTo(vmi: Vmi | undefined, migrationUid: string): boolean {
  return vmi?.status?.migrationState?.migrationUid === migrationUid;
}

/**
 * Reports whether the migration is announced: from then on the agents decide. If the instance was removed by force, the
 * phase of the migration answers instead.
 */
export function isAnnounced({ migration, vmi }: Pick<MigrationWorld, 'migration' | 'vmi'>): boolean {
  if (vmi !== undefined) return isAnnouncedTo(vmi, migration.metadata.uid);
  return isMigrationActive(migration) && phaseRank(migrationPhaseOf(migration)) >= phaseRank('PreparingTarget');
}

/** Returns the progress that the agent reports for this migration. */
export function reportedProgressOf({ migration, vmi }: MigrationWorld): MigrationProgress | undefined {
  const progress = vmi?.status?.migrationProgress;
  return progress?.migrationUid === migration.metadata.uid ? progress : undefined;
}

export function hasFinalizer({ metadata }: Stored, finalizer: string): boolean {
  return metadata.finalizers?.includes(finalizer) === true;
}

/** The outcome of a migration (outcome.ts). `note`: the Event for a decision that a user made. */
export type MigrationOutcome =
  /** The guest belongs to the target node; this is final. */
  | { readonly is: 'committed'; readonly note?: EventNote }
  /** The guest stays on the source node, or has ended there. */
  | { readonly is: 'aborted'; readonly why: string; readonly note?: EventNote }
  /** `whyUnknown`: why no agent can report the outcome as things are. */
  | { readonly is: 'undecided'; readonly whyUnknown?: string };
