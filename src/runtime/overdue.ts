/**
 * Finds wake-ups that were missed, in tests: a controller that is idle has nothing left to do for any object of its kind.
 * Where a decision asks for something all the same, the change that made the difference did not wake the controller.
 */
import { objectKey } from '#client/object-key.ts';
import { deepEqual } from '#kube/deep.ts';
import { groupResource } from '#kube/meta.ts';
import type { ControllerDefinition } from '#runtime/controller.ts';
import { MAX_RECHECK_MS, type ReadRules } from '#runtime/decision-reads.ts';
import type { Plan } from '#runtime/plan.ts';
import type { WorkQueue } from '#runtime/work-queue.ts';

/** Of a controller; the rest of a large fleet is like these. */
const MAX_NAMES = 300;

export interface OverdueParts {
  readonly queue: Pick<WorkQueue, 'isPending' | 'delayMs'>;
  readonly signal: AbortSignal;
  readonly rules: ReadRules;
}

/** Decides anew for each object of the controller's kind and returns what is asked for and on nobody's list. */
export async function overdueNames<World>(
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
  // One that has stopped leaves the rest to its successor.
  if (parts.signal.aborted) return found;
  for (const key of [...keys].slice(0, MAX_NAMES)) {
    const wish = await wishFor(definition, key, parts);
    if (wish !== undefined) found.push(`${definition.name} ${key}: ${wish}`);
  }
  return found;
}

async function wishFor<World>(
  definition: ControllerDefinition<World>,
  key: string,
  { queue, signal, rules }: OverdueParts,
): Promise<string | undefined> {
  // A change that it missed would be noticed soon enough.
  const isLookedAtSoon = () => queue.isPending(key) || (queue.delayMs(key) ?? Infinity) <= MAX_RECHECK_MS;
  if (isLookedAtSoon()) return undefined;
  const reads = rules.begin();
  const world = await reads.during(() => definition.observe(key, { signal }));
  if (world === undefined) return undefined;
  const plan = reads.during(() => definition.decide(world));
  // It was woken meanwhile.
  if (isLookedAtSoon()) return undefined;
  const status = statusOf(definition, world, plan);
  const subject = definition.subject(world);
  if (plan.changes.length > 0)
    return plan.changes.map(({ do: verb, type, why }) => `${verb} ${type.kind} (${why})`).join(', ');
  if (status !== undefined && subject !== undefined && !deepEqual(subject['status'] ?? {}, status))
    return 'write status';
  const isTimed = plan.requeueAfterMs !== undefined || reads.recheckMs !== undefined;
  return isTimed && queue.delayMs(key) === undefined ? 'look again later' : undefined;
}

/** A plan that goes on writes the concluding status in the end. */
function statusOf<World>(definition: ControllerDefinition<World>, world: World, plan: Plan): Plan['status'] {
  const concluded = plan.goOn === true ? definition.conclude?.(world, []) : undefined;
  return concluded ?? plan.status;
}
