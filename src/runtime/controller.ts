/**
 * The controller loop: names in, observe → decide → apply, again when something changes. Queue, retries, waiting for
 * caches and logging live here once; a controller brings only what it looks at and how it decides.
 */
import type { Client } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf } from '#client/object-key.ts';
import { controllerOf, type KubeObject, type ResourceType, type Stored } from '#kube/meta.ts';
import { deepEqual } from '#kube/deep.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { applyPlan, isStale, PlanFailure } from '#runtime/apply.ts';
import type { ApplyContext, Cache, Subject } from '#runtime/apply.ts';
import { noEvents } from '#runtime/events.ts';
import type { EventSink } from '#runtime/events.ts';
import type { Change, Failure, Plan } from '#runtime/plan.ts';
import { type DecisionReads, type DeclaredReads, earliest, ReadRules, type Recheck } from '#runtime/decision-reads.ts';
import { WorkQueue } from '#runtime/work-queue.ts';
import { overdueNames } from '#runtime/overdue.ts';
import type { QueueMetrics, WorkResult } from '#runtime/work-queue.ts';

/** An informer, and the names that its changes wake. */
export interface Source {
  readonly cache: Cache & { synced(): Promise<void> };
  subscribe(add: (key: string) => void): () => void;
  /** Set where no change wakes a name: who reads the kind is woken after this time instead. */
  readonly recheck?: Pick<Recheck, 'everyMs' | 'because'>;
}

export interface SourceOptions<T extends KubeObject> {
  /**
   * Wakes only when this part of an object changes, or when an object comes or goes. For kinds that change often, such as
   * nodes. It has to cover everything that decisions read of the kind.
   */
  readonly part?: (object: Stored<T>) => unknown;
}

/** Each change of an object wakes the names of its old state and those of its new state. */
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

/** For the `part` of a source: only that an object is there or not wakes. */
export function presence(): true {
  return true;
}

/** Follows no change. A name whose decision reads the kind is looked at again after `everyMs` instead. */
export function rechecked<T extends KubeObject>(
  informer: Informer<T>,
  recheck: NonNullable<Source['recheck']>,
): Source {
  return { cache: informer, subscribe: () => () => undefined, recheck };
}

function ownKey({ metadata }: Stored): string[] {
  return [keyOf(metadata)];
}

/** For the sources of children: the key of the owner that controls the object, when it is of that kind. */
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
  /** The kind whose objects the keys name. */
  readonly type: ResourceType;
  /** Whatever `observe` and `decide` read has to be followed here, or named in `rechecks`. */
  readonly sources: readonly Source[];
  /** Kinds that are read from the server and have no source. */
  readonly rechecks?: readonly Recheck[];
  /** All that the decision may know; undefined when there is nothing to decide. Reads caches, writes nothing. */
  observe(key: string, options: { signal: AbortSignal }): World | undefined | Promise<World | undefined>;
  /** Pure. */
  decide(world: World): Plan;
  /**
   * The subject's status in the light of what could not be done, written after the changes; absent leaves it as it is.
   * Called after each plan that was to go on, mostly without failures.
   */
  conclude?(world: World, failures: readonly Failure[]): Plan['status'];
  /** Told of each change that was made and had not been made before. */
  applied?(change: Change): void;
  /** Whose status the plan means, and what Events are about. */
  subject(world: World): Stored | undefined;
  /** How many names are worked on at a time. */
  readonly concurrency?: number;
}

export interface ControllerRuntime {
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Log;
  readonly events?: EventSink;
  readonly queueMetrics?: QueueMetrics;
  readonly signal: AbortSignal;
}

export interface RunningController {
  readonly name: string;
  /** Asks for a look, as a source would. */
  enqueue(key: string): void;
  /** Resolves when nothing is to be done right now: what is due later does not count. */
  idle(): Promise<void>;
  /**
   * Returns what the controller would do now although nothing has woken it, one line for each name. For tests: the result
   * is empty on an idle controller, unless a change that a decision depends on did not wake it. Writes nothing.
   */
  overdue?(): Promise<readonly string[]>;
  /** Reads of kinds that do not wake the controller; a mistake of ours. For tests. */
  readonly violations?: readonly string[];
  /** Kinds that its decisions have read so far. For tests. */
  readonly kindsRead?: ReadonlySet<string>;
  /** Resolves when the signal was aborted and the last reconcile has ended. */
  readonly stopped: Promise<void>;
}

/** Gives a definition its types where it is written. */
export function defineController<World>(definition: ControllerDefinition<World>): ControllerDefinition<World> {
  return definition;
}

/** Starts when all its sources have synced. The informers are started by whoever made them. */
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
      if (!signal.aborted) log.error({ err: error, key, failures, delayMs }, 'Cannot reconcile; trying again later');
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
    overdue: () => overdueNames(definition, { queue, signal, rules }),
    stopped: run(),
  };

  async function start(): Promise<(() => void)[]> {
    await Promise.all(sources.map(({ cache }) => cache.synced()));
    return sources.map(({ subscribe }) => subscribe((key) => queue.add(key)));
  }

  async function run(): Promise<void> {
    let leave: (() => void)[] = [];
    try {
      leave = await started;
    } catch (error) {
      if (!signal.aborted) log.error({ err: error }, 'Cannot start the controller');
    }
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    for (const unsubscribe of leave) unsubscribe();
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
  const onApplied = (change: Change) => definition.applied?.(change);
  const context: ApplyContext = { client, clock, log, events, caches, fieldManager: name, signal, onApplied };
  const subject = object === undefined ? undefined : { type, object };
  // Also after a failure: what is due at a certain time is due then, however long the next try is put off.
  const afterMs = earliest(plan.requeueAfterMs, reads.recheckMs);
  try {
    await applyAndConclude(definition, { world, plan, subject }, context);
  } catch (error) {
    if (!isStale(error)) return { failed: error, afterMs };
    log.debug({ err: error }, 'decided on an old state; looking again');
    return { retry: true, afterMs };
  }
  return { afterMs };
}

async function applyAndConclude<World>(
  definition: ControllerDefinition<World>,
  { world, plan, subject }: { world: World; plan: Plan; subject: Subject | undefined },
  context: ApplyContext,
): Promise<void> {
  const failed = await applyPlan(plan, subject, context).then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof PlanFailure) return error;
      throw error;
    },
  );
  if (plan.goOn === true) {
    const status = definition.conclude?.(world, failed?.failures ?? []);
    await applyPlan({ changes: [], status }, subject, context);
  }
  if (failed !== undefined) throw failed;
}
