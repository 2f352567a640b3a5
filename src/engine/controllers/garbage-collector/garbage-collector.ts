/**
 * Garbage collection by ownerReferences. Combines graph.ts (which objects to check), read-live.ts (their current state)
 * and decide-*.ts (the decisions). All state is derived from the objects, so a restart only lists them again.
 *
 *   informers ──► graph ──► queue of uids ──► read ──► decide ──► apply ──┐
 *       ▲                                                                 │
 *       └───────────────────────────── writes ◄───────────────────────────┘
 *
 * Work on an object ends when the informers have delivered its writes. Objects that are affected by them are queued then.
 */
import type { ObjectChange } from '#client/object-cache.ts';
import type { EngineControllerParts, EngineController } from '#engine/controllers/engine-controller.ts';
import { decideDependent } from '#engine/controllers/garbage-collector/decide-dependent.ts';
import { decideForeground, decideOrphan } from '#engine/controllers/garbage-collector/decide-owner.ts';
import { DependencyGraph, type Duty } from '#engine/controllers/garbage-collector/graph.ts';
import {
  readLiveObject,
  observeOwners,
  findDependents,
  type LiveReadParts,
} from '#engine/controllers/garbage-collector/read-live.ts';
import { isInForegroundDeletion } from '#engine/controllers/garbage-collector/metadata-only.ts';
import { Monitors } from '#engine/controllers/garbage-collector/monitors.ts';
import type { CollectedObject } from '#engine/controllers/garbage-collector/owner-patches.ts';
import { reportFailure } from '#engine/controllers/garbage-collector/report-failure.ts';
import { ServedKinds } from '#engine/controllers/garbage-collector/served-kinds.ts';
import type { KubeObject, OwnerReference, ResourceType, Stored } from '#kube/meta.ts';
import { BoundedCache } from '#lib/bounded-cache.ts';
import { unreachable } from '#lib/invariant.ts';
import { applyPlan, isStale } from '#runtime/apply.ts';
import type { RunningController } from '#runtime/controller.ts';
import { MAX_CHANGES, type Plan } from '#runtime/plan.ts';
import { WorkQueue, type WorkResult } from '#runtime/work-queue.ts';

const NAME = 'garbage-collector';
/** The default of --concurrent-gc-syncs of kube-controller-manager. */
const CONCURRENCY = 20;
/** The number of immediate attempts after conflicts. After that the object is retried with backoff. */
const MAX_ATTEMPTS = 5;
/** The maximum number of deleted owners to remember. Used only for owners of kinds that are no longer served. */
const MAX_DELETED = 10_000;

export const garbageCollector: EngineController = {
  account: 'generic-garbage-collector',
  start: (parts) => new Collector(parts),
};

class Collector implements RunningController {
  readonly name = NAME;
  readonly stopped: Promise<void>;
  readonly #parts: EngineControllerParts;
  readonly #graph = new DependencyGraph();
  readonly #monitors: Monitors;
  readonly #queue: WorkQueue;
  readonly #live: LiveReadParts;
  readonly #deleted = new BoundedCache<string, true>({ maxEntries: MAX_DELETED, maxWeight: MAX_DELETED });
  /** False until all kinds are listed. Before that, an owner may be unknown only because it is not listed yet. */
  #started = false;

  constructor(parts: EngineControllerParts) {
    const { client, clock, registry, signal } = parts;
    this.#parts = parts;
    const log = parts.log.child({ controller: NAME });
    const kinds = new ServedKinds(registry);
    const wasDeleted = (uid: string) => this.#deleted.get(uid) !== undefined && this.#graph.get(uid) === undefined;
    this.#live = { reader: client, kinds, graph: this.#graph, wasDeleted, signal };
    this.#queue = new WorkQueue({
      clock,
      concurrency: CONCURRENCY,
      work: (uid) => this.#work(uid),
      onError: (uid, error, { failures, delayMs }) => {
        if (!signal.aborted) reportFailure(log, error, { ...this.#describe(uid), failures, delayMs });
      },
    });
    this.#monitors = new Monitors({
      reader: client,
      kinds,
      clock,
      log,
      signal,
      onChange: (type, change) => this.#handleChange(type, change),
      onKindRemoved: (type) => this.#removeKind(type),
      onComplete: () => this.#enqueueEverything(),
    });
    this.#monitors.refresh();
    this.stopped = this.#run();
  }

  enqueue(uid: string): void {
    this.#queue.add(uid);
  }

  async idle(): Promise<void> {
    do {
      await this.#monitors.whenComplete();
      await this.#queue.idle();
    } while (!this.#monitors.isComplete && !this.#parts.signal.aborted);
  }

  async #run(): Promise<void> {
    const { signal } = this.#parts;
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    await this.#queue.shutdown();
    await this.#monitors.stopped();
  }

  #handleChange(type: ResourceType, { old, new: next }: ObjectChange<KubeObject>): void {
    if (old !== undefined && old.metadata.uid !== next?.metadata.uid) {
      const { uid } = old.metadata;
      if (this.#graph.hasDependents(uid)) this.#deleted.set(uid, true, 1);
      this.#enqueueAll(this.#graph.remove(uid));
    }
    if (next !== undefined) this.#enqueueAll(this.#graph.set({ type, object: next }));
    // The changed object may be a definition that adds or removes a kind.
    this.#monitors.refresh();
  }

  #removeKind({ group, plural }: ResourceType): void {
    const uids = [...this.#graph.nodes()]
      .filter(({ type }) => type.group === group && type.plural === plural)
      .map(({ object }) => object.metadata.uid);
    for (const uid of uids) this.#enqueueAll(this.#graph.remove(uid));
  }

  #enqueueEverything(): void {
    this.#started = true;
    for (const { object } of this.#graph.nodes()) this.#enqueueAll([object.metadata.uid]);
  }

  #enqueueAll(uids: readonly string[]): void {
    if (!this.#started) return;
    for (const uid of uids) if (this.#graph.dutyOf(uid) !== undefined) this.#queue.add(uid);
  }

  async #work(uid: string): Promise<WorkResult> {
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      const duty = this.#graph.dutyOf(uid);
      if (duty === undefined) return {};
      try {
        return await this.#perform(duty, uid);
      } catch (error) {
        if (!isStale(error)) throw error;
      }
    }
    return { retry: true };
  }

  async #perform(duty: Duty, uid: string): Promise<WorkResult> {
    const found = await readLiveObject(this.#live, this.#graph.get(uid)!);
    // Deleted; the watch will deliver this.
    if (found === undefined) return {};
    // Checked after the read, during which kinds may have been added. Dependents that are not listed yet must not be
    // missed. Once all kinds are listed, every object is enqueued again.
    if (duty !== 'checkOwners' && !this.#monitors.isComplete) return {};
    switch (duty) {
      case 'checkOwners':
        return this.#checkOwners(found);
      case 'orphan': {
        const dependents = await findDependents(this.#live, found, MAX_CHANGES);
        return this.#apply(decideOrphan({ ...found, dependents }));
      }
      case 'release':
      case 'unblock': {
        // The graph may have changed during the read.
        const isBlocked = this.#graph.dutyOf(uid) !== 'release';
        return this.#apply(decideForeground({ ...found, isBlocked, cyclicOwners: this.#graph.cyclicOwnersOf(uid) }));
      }
      default:
        return unreachable(duty);
    }
  }

  async #checkOwners(found: CollectedObject): Promise<WorkResult> {
    const owners = await observeOwners(this.#live, found);
    const dependents = this.#dependentsState(found.object.metadata.uid);
    const { plan, retryLater = false, invalidOwners } = decideDependent({ ...found, owners, dependents });
    for (const reference of invalidOwners) this.#reportInvalidOwner(found.object, reference);
    return { ...(await this.#apply(plan)), retry: retryLater };
  }

  #dependentsState(uid: string): 'none' | 'some' | 'waiting' {
    if (!this.#graph.hasDependents(uid)) return 'none';
    for (const { object } of this.#graph.dependentsOf(uid)) if (isInForegroundDeletion(object)) return 'waiting';
    return 'some';
  }

  async #apply(plan: Plan): Promise<WorkResult> {
    const { client, clock, log, events, signal } = this.#parts;
    const caches = this.#monitors.informers;
    await applyPlan(plan, undefined, { client, clock, log, events, caches, fieldManager: NAME, signal });
    return { afterMs: plan.requeueAfterMs };
  }

  #reportInvalidOwner(about: Stored, { apiVersion, kind, name, uid }: OwnerReference): void {
    const { namespace = '' } = about.metadata;
    const owner = `[${apiVersion}/${kind}, namespace: ${namespace}, name: ${name}, uid: ${uid}]`;
    const message = `ownerRef ${owner} does not exist in namespace "${namespace}"`;
    this.#parts.events.record(about, { type: 'Warning', reason: 'OwnerRefInvalidNamespace', message });
  }

  #describe(uid: string): object {
    const node = this.#graph.get(uid);
    if (node === undefined) return { uid };
    const { name, namespace } = node.object.metadata;
    return { uid, kind: node.type.kind, namespace, name };
  }
}
