/**
 * Garbage collection by ownerReferences: the shell around graph.ts (whom to look at), look.ts (what the API says) and
 * decide-*.ts (what to do). Nothing is remembered that is not in objects: after a crash the lists tell all of it again.
 *
 *   informers ──► graph ──► queue of uids ──► look ──► decide ──► apply ──┐
 *       ▲                                                                 │
 *       └──────────────────────── what was written ◄──────────────────────┘
 *
 * An object's turn ends when the informers show what it wrote, so that what follows from it is queued by then.
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
/** As kube-controller-manager's --concurrent-gc-syncs. */
const CONCURRENCY = 20;
/** How often a decision on an old state is made anew at once; after that it waits like a failure. */
const MAX_ATTEMPTS = 5;
/** Owners whose end was seen; asked only about kinds that are not served any more. */
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
  readonly #look: LiveReadParts;
  readonly #gone = new BoundedCache<string, true>({ maxEntries: MAX_DELETED, maxWeight: MAX_DELETED });
  /** Before that, owners seem unknown that are only not listed yet. */
  #started = false;

  constructor(parts: EngineControllerParts) {
    const { client, clock, registry, signal } = parts;
    this.#parts = parts;
    const log = parts.log.child({ controller: NAME });
    const kinds = new ServedKinds(registry);
    const seenToGo = (uid: string) => this.#gone.get(uid) !== undefined && this.#graph.get(uid) === undefined;
    this.#look = { reader: client, kinds, graph: this.#graph, wasDeleted: seenToGo, signal };
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
      onChange: (type, change) => this.#changed(type, change),
      onKindRemoved: (type) => this.#forget(type),
      onComplete: () => this.#lookAtAll(),
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

  #changed(type: ResourceType, { old, new: next }: ObjectChange<KubeObject>): void {
    if (old !== undefined && old.metadata.uid !== next?.metadata.uid) {
      const { uid } = old.metadata;
      if (this.#graph.hasDependents(uid)) this.#gone.set(uid, true, 1);
      this.#enqueueAll(this.#graph.remove(uid));
    }
    if (next !== undefined) this.#enqueueAll(this.#graph.set({ type, object: next }));
    // Definitions are objects, too: this is how new kinds become known.
    this.#monitors.refresh();
  }

  #forget({ group, plural }: ResourceType): void {
    const uids = [...this.#graph.nodes()]
      .filter(({ type }) => type.group === group && type.plural === plural)
      .map(({ object }) => object.metadata.uid);
    for (const uid of uids) this.#enqueueAll(this.#graph.remove(uid));
  }

  #lookAtAll(): void {
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
        return await this.#do(duty, uid);
      } catch (error) {
        if (!isStale(error)) throw error;
      }
    }
    return { retry: true };
  }

  async #do(duty: Duty, uid: string): Promise<WorkResult> {
    const found = await readLiveObject(this.#look, this.#graph.get(uid)!);
    // Gone: the watch will say so.
    if (found === undefined) return {};
    // After the look, during which kinds may have come: dependents that are not listed yet must not be overlooked. When
    // all are, everything is looked at again.
    if (duty !== 'judge' && !this.#monitors.isComplete) return {};
    switch (duty) {
      case 'judge':
        return this.#judge(found);
      case 'orphan': {
        const dependents = await findDependents(this.#look, found, MAX_CHANGES);
        return this.#apply(decideOrphan({ ...found, dependents }));
      }
      case 'release':
      case 'unblock': {
        // The graph may have changed during the look.
        const blocked = this.#graph.dutyOf(uid) !== 'release';
        return this.#apply(
          decideForeground({ ...found, isBlocked: blocked, cyclicOwners: this.#graph.cyclicOwnersOf(uid) }),
        );
      }
      default:
        return unreachable(duty);
    }
  }

  async #judge(found: CollectedObject): Promise<WorkResult> {
    const owners = await observeOwners(this.#look, found);
    const dependents = this.#dependentsState(found.object.metadata.uid);
    const { plan, retryLater = false, invalidOwners } = decideDependent({ ...found, owners, dependents });
    for (const reference of invalidOwners) this.#tell(found.object, reference);
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

  #tell(about: Stored, { apiVersion, kind, name, uid }: OwnerReference): void {
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
