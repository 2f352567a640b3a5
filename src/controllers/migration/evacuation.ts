/**
 * Evacuation: creates a migration for an instance that has to leave its node because the node is drained, and another
 * one some time after a failure. The admission of pod evictions decides which instances are marked for it. Pure.
 */
import { createHash } from 'node:crypto';
import type { EvictionStrategy } from '#api/kubevirt/kind.ts';
import { isMigrating } from '#api/migration/migration-state.ts';
import { EVACUATION_ANNOTATION } from '#api/names.ts';
import {
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  type VirtualMachineInstanceMigration,
} from '#api/virtual-machine-instance-migration/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { isMigrationFinished, type StoredMigration } from '#controllers/migration/migration-world.ts';
import { isTrue } from '#kube/conditions.ts';
import { apiVersionOf, isDeleting, type Stored } from '#kube/meta.ts';
import { EMPTY_PLAN, type Plan } from '#runtime/plan.ts';

const PREFIX = 'kubevirt-evacuation-';
const SUFFIX_LENGTH = 10;
const FIRST_RETRY_MS = 20_000;
const MAX_RETRY_MS = 5 * 60_000;

export interface EvacuationWorld {
  readonly vmi: Stored<VirtualMachineInstance>;
  /** All migrations of the instance that still exist. */
  readonly migrations: readonly StoredMigration[];
  /** Applies to instances without an eviction strategy of their own. */
  readonly defaultStrategy: EvictionStrategy;
  readonly now: number;
}

/** Reports whether the instance is marked to leave the node on which it is now. */
export function isEvacuating({ status }: VirtualMachineInstance): boolean {
  return !!status?.evacuationNodeName && status.evacuationNodeName === status.nodeName;
}

export function decideEvacuation(world: EvacuationWorld): Plan {
  const { vmi, migrations, now } = world;
  if (!needsMigration(world) || migrations.some((migration) => !isMigrationFinished(migration))) return EMPTY_PLAN;
  const node = vmi.status?.evacuationNodeName ?? '';
  const attempts = migrations.filter(({ metadata }) => metadata.annotations?.[EVACUATION_ANNOTATION] === node);
  const waitMs = nextAttemptAt(attempts) - now;
  if (waitMs > 0) return { changes: [], requeueAfterMs: waitMs };
  const object = buildEvacuationMigration(vmi, node, attempts.toSorted(newestFirst)[0]);
  const why = `Created migration ${object.metadata.name ?? ''}: node ${node} is being drained`;
  return { changes: [{ do: 'create', type: VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, object, why }] };
}

function needsMigration({ vmi, defaultStrategy }: EvacuationWorld): boolean {
  const { status, spec } = vmi;
  if (!isEvacuating(vmi) || isDeleting(vmi) || status?.phase !== 'Running' || isMigrating(status.migrationState))
    return false;
  const strategy = spec.evictionStrategy ?? defaultStrategy;
  const migrates = strategy === 'LiveMigrate' || strategy === 'LiveMigrateIfPossible';
  return migrates && isTrue(status.conditions, 'LiveMigratable');
}

/** Returns the time of the next attempt. The delay doubles with each failed migration that still exists. */
function nextAttemptAt(attempts: readonly StoredMigration[]): number {
  const failures = attempts.filter(({ status }) => status?.phase === 'Failed');
  const ends = failures.map(({ metadata, status }) => {
    const end = status?.phaseTransitionTimestamps?.find(({ phase }) => phase === 'Failed')?.phaseTransitionTimestamp;
    return Date.parse(end ?? metadata.creationTimestamp);
  });
  if (ends.length === 0) return 0;
  return Math.max(...ends) + Math.min(FIRST_RETRY_MS * 2 ** (ends.length - 1), MAX_RETRY_MS);
}

/**
 * Builds the migration. The previous attempt is a part of its name: a repeated create yields the same object, a new
 * attempt another one.
 */
function buildEvacuationMigration(
  { metadata }: Stored<VirtualMachineInstance>,
  node: string,
  last: StoredMigration | undefined,
): VirtualMachineInstanceMigration {
  const seed = [metadata.uid, node, last?.metadata.uid ?? ''].join('\n');
  return {
    apiVersion: apiVersionOf(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS),
    kind: VIRTUAL_MACHINE_INSTANCE_MIGRATIONS.kind,
    metadata: {
      namespace: metadata.namespace,
      name: PREFIX + createHash('sha256').update(seed).digest('hex').slice(0, SUFFIX_LENGTH),
      annotations: { [EVACUATION_ANNOTATION]: node },
    },
    spec: { vmiName: metadata.name },
  };
}

function newestFirst({ metadata: a }: StoredMigration, { metadata: b }: StoredMigration): number {
  if (a.creationTimestamp !== b.creationTimestamp) return a.creationTimestamp > b.creationTimestamp ? -1 : 1;
  return a.uid < b.uid ? -1 : 1;
}
