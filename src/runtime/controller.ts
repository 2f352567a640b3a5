/**
 * The controller loop: observe → decide → apply for one key, repeated when something changes. Queue, retries, waiting
 * for caches and logging are implemented here once; a controller only defines what it observes and how it decides.
 */
import type { Client } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { controllerOf, type KubeObject, type ResourceType, type Stored, groupResource } from '#kube/meta.ts';
import { deepEqual } from '#kube/deep.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { applyPlan, isStale, PlanFailure } from '#runtime/apply.ts';
import type { ApplyContext, Cache, PlanSubject } from '#runtime/apply.ts';
import { noEvents } from '#runtime/events.ts';
import type { EventSink } from '#runtime/events.ts';
import { needsConclusion, type Change, type FailedChange, type Plan } from '#runtime/plan.ts';
import {
  type DecisionReads,
  type DeclaredReads,
  earliest,
  ReadRules,
  type Recheck,
  MAX_RECHECK_MS,
} from '#runtime/decision-reads.ts';
import { WorkQueue, type QueueMetrics, type WorkResult } from '#runtime/work-queue.ts';

/** An informer, and the keys that its changes enqueue. */
export interface Source {
  readonly cache: Cache & { waitForSync(): Promise<void> };
  subscribe(add: (key: string) => void): () => void;
  /** Set if no change enqueues a key: keys whose decision reads the kind are enqueued after this time instead. */
  readonly recheck?: Pick<Recheck, 'everyMs' | 'because'>;
}

interface SourceOptions<T extends KubeObject> {
  /**
   * Enqueues only if this part of an object changes, or if an object is created or deleted. For kinds that change
   * often, such as nodes. Must include everything that decisions read of the kind.
   */
  readonly part?: (object: Stored<T>) => unknown;
}

/** A source where each change of an object enqueues the keys of its old state and those of its new state. */
export function source<T extends KubeObject>(
  informer: Informer<T>,
  keysOf: (object: Stored<T>) => Iterable<string> = ownKey,
  { part }: SourceOptions<T> = {},
): Source {
  return {
    cache: informer,
    subscribe: (add) =>
      informer.onChange((_, { old, new: next }) => {
        if (part !== undefined && old !== undefined && next !== undefined && deepEqual(part(old), part(next))) return;
        if (old !== undefined) for (const key of keysOf(old)) add(key);
        if (next !== undefined) for (const key of keysOf(next)) add(key);
      }),
  };
}

/** A `part` for sources of which only creations and deletions matter. */
export function presenceOnly(): true {
  return true;
}

/** A source without changes. A key whose decision reads the kind is reconciled again after `everyMs` instead. */
export function recheckedSource<T extends KubeObject>(
  informer: Informer<T>,
  recheck: NonNullable<Source['recheck']>,
): Source {
  return { cache: informer, subscribe: () => () => undefined, recheck };
}

function ownKey({ metadata }: Stored): string[] {
  return [keyOf(metadata)];
}

/** Returns the keys for a source of dependents: that of the controlling owner, if it is of that kind. */
export function controllerKeys(owner: ResourceType): (object: Stored) => string[] {
  return (object) => {
    const { metadata } = object;
    const reference = controllerOf(object);
    if (reference === undefined || reference.kind !== owner.kind) return [];
    if (!reference.apiVersion.startsWith(owner.group === '' ? owner.version : `${owner.group}/`)) return [];
    return [keyOf({ namespace: owner.namespaced ? metadata.namespace : undefined, name: reference.name })];
  };
}

export interface ControllerDefinition<World> {
  readonly name: string;
  /** The kind of the objects that the keys name. */
  readonly type: ResourceType;
  /** Must include every kind that `observe` and `decide` read, except those of `rechecks`. */
  readonly sources: readonly Source[];
  /** Kinds that are read from the server, without a source. */
  readonly rechecks?: readonly Recheck[];
  /**
   * Returns everything that the decision may use; undefined if there is nothing to decide. Reads caches, writes
   * nothing.
   */
  observe(key: string, options: { signal: AbortSignal }): World | undefined | Promise<World | undefined>;
  /** Returns the plan for this world. Pure. */
  decide(world: World): Plan;
  /**
   * Returns the subject's status after the changes, given those that failed; undefined keeps it. Called after each plan
   * with continueOnError (needsConclusion), usually without failures.
   */
  conclude?(world: World, failures: readonly FailedChange[]): Plan['status'];
  /** Called once for each change that was newly applied. */
  onApplied?(change: Change): void;
  /** Returns the object whose status the plan contains and to which Events refer. */
  subject(world: World): Stored | undefined;
  /** The number of keys that are reconciled at the same time. */
  readonly concurrency?: number;
}

interface ControllerRuntime {
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Log;
  readonly events?: EventSink;
  readonly queueMetrics?: QueueMetrics;
  readonly signal: AbortSignal;
}

export interface RunningController {
  readonly name: string;
  /** Requests a reconcile, like a source. */
  enqueue(key: string): void;
  /** Resolves when no key is ready or running; delayed keys do not count. */
  idle(): Promise<void>;
  /**
   * Returns what the controller would do now although nothing has enqueued it, one line per key. For tests: an idle
   * controller returns nothing, unless a change that a decision depends on did not enqueue the key. Writes nothing.
   */
  findOverdue?(): Promise<readonly string[]>;
  /** Reads of kinds whose changes do not trigger the controller, which are bugs. For tests. */
  readonly violations?: readonly string[];
  /** Kinds that its decisions have read so far. For tests. */
  readonly kindsRead?: ReadonlySet<string>;
  /** Resolves when the signal is aborted and the last reconcile has ended. */
  readonly stopped: Promise<void>;
}

/** Returns the definition, with its types inferred. */
export function defineController<World>(definition: ControllerDefinition<World>): ControllerDefinition<World> {
  return definition;
}

/** Starts the controller when all its sources have synced. The caller starts the informers. */
export function startController<World>(
  definition: ControllerDefinition<World>,
  runtime: ControllerRuntime,
): RunningController {
  const { name, sources, concurrency } = definition;
  const { clock, queueMetrics: metrics, signal } = runtime;
  const log = runtime.log.child({ controller: name });
  const rules = new ReadRules({ ...declaredReads(definition), onViolation: (message) => log.error({}, message) });
  const queue = new WorkQueue({
    clock,
    concurrency,
    metrics,
    work: (key) => reconcile(definition, key, { ...runtime, log: log.child({ key }), reads: rules.begin() }),
    onError: (key, error, { failures, delayMs }) => {
      if (!signal.aborted) log.error({ err: error, key, failures, delayMs }, 'Cannot reconcile; retrying');
    },
  });
  const started = start();
  return {
    name,
    enqueue: (key) => queue.add(key),
    idle,
    kindsRead: rules.read,
    get violations() {
      return rules.violations;
    },
    findOverdue: () => findOverdue(definition, { queue, signal, rules }),
    stopped: run(),
  };

  async function start(): Promise<(() => void)[]> {
    await Promise.all(sources.map(({ cache }) => cache.waitForSync()));
    return sources.map(({ subscribe }) => subscribe((key) => queue.add(key)));
  }

  async function run(): Promise<void> {
    let subscriptions: (() => void)[] = [];
    try {
      subscriptions = await started;
    } catch (error) {
      if (!signal.aborted) log.error({ err: error }, 'Cannot start the controller');
    }
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    for (const unsubscribe of subscriptions) unsubscribe();
    await queue.shutdown();
  }

  async function idle(): Promise<void> {
    await started;
    await queue.idle();
  }
}

function declaredReads({
  name,
  sources,
  rechecks = [],
}: Pick<ControllerDefinition<unknown>, 'name' | 'sources' | 'rechecks'>): DeclaredReads {
  return {
    name,
    followed: sources.filter(({ recheck }) => recheck === undefined).map(({ cache }) => cache.type),
    rechecks: [
      ...sources.flatMap(({ cache, recheck }) => (recheck === undefined ? [] : [{ type: cache.type, ...recheck }])),
      ...rechecks,
    ],
  };
}

async function reconcile<World>(
  definition: ControllerDefinition<World>,
  key: string,
  { client, clock, log, events = noEvents, signal, reads }: ControllerRuntime & { readonly reads: DecisionReads },
): Promise<WorkResult> {
  const { name, type } = definition;
  const world = await reads.during(() => definition.observe(key, { signal }));
  if (world === undefined) return { afterMs: reads.recheckMs };
  const plan = reads.during(() => definition.decide(world));
  const object = definition.subject(world);
  const caches = definition.sources.map(({ cache }) => cache);
  const onApplied = (change: Change) => definition.onApplied?.(change);
  const context: ApplyContext = { client, clock, log, events, caches, fieldManager: name, signal, onApplied };
  const subject = object === undefined ? undefined : { type, object };
  // Also after a failure: a requested time applies even if the backoff is longer.
  const afterMs = earliest(plan.requeueAfterMs, reads.recheckMs);
  try {
    await applyAndConclude(definition, { world, plan, subject }, context);
  } catch (error) {
    if (!isStale(error)) return { failed: error, afterMs };
    log.debug({ err: error }, 'the decision was based on an outdated state; reconciling again');
    return { retry: true, afterMs };
  }
  return { afterMs };
}

async function applyAndConclude<World>(
  definition: ControllerDefinition<World>,
  { world, plan, subject }: { world: World; plan: Plan; subject: PlanSubject | undefined },
  context: ApplyContext,
): Promise<void> {
  const failed = await applyPlan(plan, subject, context).then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof PlanFailure) return error;
      throw error;
    },
  );
  if (needsConclusion(plan)) {
    const status = definition.conclude?.(world, failed?.failures ?? []);
    await applyPlan({ changes: [], status }, subject, context);
  }
  if (failed !== undefined) throw failed;
}

/** Limit of keys per controller. The remaining keys of a large fleet are similar. */
const MAX_OVERDUE_KEYS = 300;

interface OverdueParts {
  readonly queue: Pick<WorkQueue, 'isPending' | 'delayMs'>;
  readonly signal: AbortSignal;
  readonly rules: ReadRules;
}

/**
 * Detects missed triggers, in tests: decides again for each object of the controller's kind and returns the changes that
 * are wanted but not scheduled. An idle controller has none. If it has, the event that made the difference did not
 * enqueue the key.
 */
async function findOverdue<World>(
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
  for (const key of [...keys].slice(0, MAX_OVERDUE_KEYS)) {
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
