/**
 * Instances that are to leave their node, because somebody empties it: a migration is asked for, and again after a while
 * where one has failed. Who marks them, and who may not be marked, is decided where the eviction is refused. Pure.
 */
import { createHash } from 'node:crypto';
import type { EvictionStrategy } from '#api/kubevirt/kind.ts';
import { isMigrating } from '#api/migration-state.ts';
import { EVACUATION_ANNOTATION } from '#api/names.ts';
import {
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  type VirtualMachineInstanceMigration,
} from '#api/virtual-machine-instance-migration/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { isFinished, type Migration } from '#controllers/migration/migration-world.ts';
import { isTrue } from '#kube/conditions.ts';
import { apiVersionOf, isDeleting, type Stored } from '#kube/meta.ts';
import { NOTHING, type Plan } from '#runtime/plan.ts';

const PREFIX = 'kubevirt-evacuation-';
const SUFFIX_LENGTH = 10;
const FIRST_RETRY_MS = 20_000;
const MAX_RETRY_MS = 5 * 60_000;

export interface EvacuationWorld {
  readonly vmi: Stored<VirtualMachineInstance>;
  /** All of the instance that are still there. */
  readonly migrations: readonly Migration[];
  /** Of instances that say nothing themselves. */
  readonly defaultStrategy: EvictionStrategy;
  readonly now: number;
}

export function isToLeave({ status }: VirtualMachineInstance): boolean {
  return !!status?.evacuationNodeName && status.evacuationNodeName === status.nodeName;
}

export function decideEvacuation(world: EvacuationWorld): Plan {
  const { vmi, migrations, now } = world;
  if (!isWanted(world) || migrations.some((migration) => !isFinished(migration))) return NOTHING;
  const node = vmi.status?.evacuationNodeName ?? '';
  const tried = migrations.filter(({ metadata }) => metadata.annotations?.[EVACUATION_ANNOTATION] === node);
  const waitMs = retryAt(tried) - now;
  if (waitMs > 0) return { changes: [], requeueAfterMs: waitMs };
  const object = buildEvacuation(vmi, node, tried.toSorted(newestFirst)[0]);
  const why = `Created migration ${object.metadata.name ?? ''}: node ${node} is being emptied`;
  return { changes: [{ do: 'create', type: VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, object, why }] };
}

function isWanted({ vmi, defaultStrategy }: EvacuationWorld): boolean {
  const { status, spec } = vmi;
  if (!isToLeave(vmi) || isDeleting(vmi) || status?.phase !== 'Running' || isMigrating(status.migrationState))
    return false;
  const strategy = spec.evictionStrategy ?? defaultStrategy;
  const isOurs = strategy === 'LiveMigrate' || strategy === 'LiveMigrateIfPossible';
  return isOurs && isTrue(status.conditions, 'LiveMigratable');
}

/** Later each time, as far as earlier ones are still there. */
function retryAt(tried: readonly Migration[]): number {
  const failures = tried.filter(({ status }) => status?.phase === 'Failed');
  const ends = failures.map(({ metadata, status }) => {
    const end = status?.phaseTransitionTimestamps?.find(({ phase }) => phase === 'Failed')?.phaseTransitionTimestamp;
    return Date.parse(end ?? metadata.creationTimestamp);
  });
  if (ends.length === 0) return 0;
  return Math.max(...ends) + Math.min(FIRST_RETRY_MS * 2 ** (ends.length - 1), MAX_RETRY_MS);
}

/** Named after the one before, too: asking twice makes one, asking again makes another. */
function buildEvacuation(
  { metadata }: Stored<VirtualMachineInstance>,
  node: string,
  last: Migration | undefined,
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

function newestFirst({ metadata: a }: Migration, { metadata: b }: Migration): number {
  if (a.creationTimestamp !== b.creationTimestamp) return a.creationTimestamp > b.creationTimestamp ? -1 : 1;
  return a.uid < b.uid ? -1 : 1;
}
