/**
 * All that a decision about one migration may know. What was decided before stands in the migration's own status
 * (migrationState), which is written before anything is done; the instance gets a copy of it once its agents are told.
 */
import type { Configuration } from '#api/kubevirt/configuration.ts';
import type { MigrationProgress, MigrationState } from '#api/migration-state.ts';
import {
  isFinalPhase,
  MIGRATION_PHASES,
  type MigrationPhase,
  type VirtualMachineInstanceMigration,
} from '#api/virtual-machine-instance-migration/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { currentLauncherName } from '#controllers/vmi/launcher-of.ts';
import type { ClaimView } from '#controllers/vmi/vmi-world.ts';
import type { PersistentVolume, PersistentVolumeClaim, Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

export type Migration = Stored<VirtualMachineInstanceMigration>;
type Vmi = Stored<VirtualMachineInstance>;

export interface MigrationWorld {
  readonly migration: Migration;
  /** Its instance; one that only has the name is none. */
  readonly vmi?: Vmi;
  /** The VM of the instance. */
  readonly vm?: Stored<VirtualMachine>;
  /** The pod that has the guest, as it was when the migration began. */
  readonly sourcePod?: Stored<Pod>;
  readonly targetPod?: Stored<Pod>;
  /** Claims that the instance names, by name. */
  readonly claims: ReadonlyMap<string, ClaimView>;
  /** Where the state that outlives the guest lies, and where it is to lie. */
  readonly sourceClaim?: Stored<PersistentVolumeClaim>;
  readonly targetClaim?: Stored<PersistentVolumeClaim>;
  /** Names of claims that are not ours to use. */
  isTaken(claimName: string): boolean;
  /** The name of another instance that has not ended and names the same claim. */
  otherUserOf(claimName: string): string | undefined;
  /** Volumes whose data may be on its way because of this migration. */
  readonly incoming: readonly Stored<PersistentVolume>[];
  /** Unfinished migrations of the same instance, without this one. */
  readonly others: readonly Migration[];
  /** Finished migrations of the same instance. */
  readonly finished: readonly Migration[];
  /** How many others go on, in the cluster and away from the node of the guest. */
  readonly active: { readonly inCluster: number; readonly fromNode: number };
  readonly settings: Configuration['migrations'];
  /** Whether somebody answers for the node of the guest. */
  readonly sourceAnswers: boolean;
  /** Whether somebody answers for the node that it is to go to. */
  readonly targetAnswers: boolean;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export function phaseOf({ status }: Pick<VirtualMachineInstanceMigration, 'status'>): MigrationPhase {
  return status?.phase ?? 'Pending';
}

export function isFinished(migration: Pick<VirtualMachineInstanceMigration, 'status'>): boolean {
  return isFinalPhase(migration.status?.phase);
}

/** It takes one of the places that are limited. */
export function isActive(migration: Pick<VirtualMachineInstanceMigration, 'status'>): boolean {
  return phaseOf(migration) !== 'Pending' && !isFinished(migration);
}

export function rankOf(phase: MigrationPhase): number {
  return MIGRATION_PHASES.indexOf(phase);
}

export function recordOf({ migration }: Pick<MigrationWorld, 'migration'>): MigrationState {
  return migration.status?.migrationState ?? {};
}

/** It was decided where from and where to. */
export function hasBegun(world: Pick<MigrationWorld, 'migration'>): boolean {
  return recordOf(world).targetPod !== undefined;
}

/** Whether the migration, as far as it has begun, is of this very instance. */
export function isOf({ metadata, status }: Migration, vmi: Vmi): boolean {
  const sourcePod = status?.migrationState?.sourcePod;
  return sourcePod === undefined || isToldTo(vmi, metadata.uid) || currentLauncherName(vmi) === sourcePod;
}

export function isToldTo(vmi: Vmi | undefined, migrationUid: string): boolean {
  return vmi?.status?.migrationState?.migrationUid === migrationUid;
}

/**
 * Whether the agents know of it: from then on they decide. Where the instance is gone, which only force brings about,
 * the phase remembers.
 */
export function isTold({ migration, vmi }: Pick<MigrationWorld, 'migration' | 'vmi'>): boolean {
  if (vmi !== undefined) return isToldTo(vmi, migration.metadata.uid);
  return isActive(migration) && rankOf(phaseOf(migration)) >= rankOf('PreparingTarget');
}

/** What the agent says of this migration. */
export function progressOf({ migration, vmi }: MigrationWorld): MigrationProgress | undefined {
  const progress = vmi?.status?.migrationProgress;
  return progress?.migrationUid === migration.metadata.uid ? progress : undefined;
}

export function hasFinalizer({ metadata }: Stored, finalizer: string): boolean {
  return metadata.finalizers?.includes(finalizer) === true;
}
