/**
 * Detects missed triggers, in tests: an idle controller has nothing to do for any object of its kind. If a decision
 * still wants a change, the event that made the difference did not enqueue the key.
 */
import { objectKey } from '#client/object-key.ts';
import { deepEqual } from '#kube/deep.ts';
import { groupResource } from '#kube/meta.ts';
import type { ControllerDefinition } from '#runtime/controller.ts';
import { MAX_RECHECK_MS, type ReadRules } from '#runtime/decision-reads.ts';
import { needsConclusion, type Plan } from '#runtime/plan.ts';
import type { WorkQueue } from '#runtime/work-queue.ts';

/** Limit of keys per controller. The remaining keys of a large fleet are similar. */
const MAX_KEYS = 300;

export interface OverdueParts {
  readonly queue: Pick<WorkQueue, 'isPending' | 'delayMs'>;
  readonly signal: AbortSignal;
  readonly rules: ReadRules;
}

/** Decides again for each object of the controller's kind and returns the changes that are wanted but not scheduled. */
export async function findOverdue<World>(
  definition: ControllerDefinition<World>,
  parts: OverdueParts,
): Promise<readonly string[]> {
  const kind = groupResource(definition.type);
  const keys = new Set(
    definition.sources
      .filter(({ cache }) => groupResource(cache.type) === kind)
      .flatMap(({ cache }) => cache.list().map(objectKey)),
  );
  const found = [...parts.rules.violations];
  // A stopped controller leaves its work to its successor.
  if (parts.signal.aborted) return found;
  for (const key of [...keys].slice(0, MAX_KEYS)) {
    const missed = await findMissed(definition, key, parts);
    if (missed !== undefined) found.push(`${definition.name} ${key}: ${missed}`);
  }
  return found;
}

async function findMissed<World>(
  definition: ControllerDefinition<World>,
  key: string,
  { queue, signal, rules }: OverdueParts,
): Promise<string | undefined> {
  // A missed change would be noticed soon.
  const isDueSoon = () => queue.isPending(key) || (queue.delayMs(key) ?? Infinity) <= MAX_RECHECK_MS;
  if (isDueSoon()) return undefined;
  const reads = rules.begin();
  const world = await reads.during(() => definition.observe(key, { signal }));
  if (world === undefined) return undefined;
  const plan = reads.during(() => definition.decide(world));
  // The key was enqueued in the meantime.
  if (isDueSoon()) return undefined;
  const status = statusOf(definition, world, plan);
  const subject = definition.subject(world);
  if (plan.changes.length > 0)
    return plan.changes.map(({ do: verb, type, why }) => `${verb} ${type.kind} (${why})`).join(', ');
  if (status !== undefined && subject !== undefined && !deepEqual(subject['status'] ?? {}, status))
    return 'write status';
  const isTimed = plan.requeueAfterMs !== undefined || reads.recheckMs !== undefined;
  return isTimed && queue.delayMs(key) === undefined ? 'reconcile later' : undefined;
}

/** Returns the status that the plan finally writes, which is that of `conclude` if there is one. */
function statusOf<World>(definition: ControllerDefinition<World>, world: World, plan: Plan): Plan['status'] {
  const concluded = needsConclusion(plan) ? definition.conclude?.(world, []) : undefined;
  return concluded ?? plan.status;
}
