/**
 * The scheduler: gives each pod without a node the best one that it fits on, one pod at a time, or says why there is none.
 * Bindings are written side by side: a decision takes the room at once (ClusterState.assume), the next one sees it.
 * Nothing is preempted; pods of other schedulers (spec.schedulerName) and behind gates are left alone.
 *
 *   waiting ──fits──► bound (pods/binding)
 *     │  ▲  └─fits, volumes wait for their first consumer──► claims are told the node ──bound──► looked at again
 *     ▼  └── something changed that may help (wake.ts), or five minutes went by
 *   fits nowhere: PodScheduled=False, FailedScheduling
 */
import type { Informer } from '#client/informer.ts';
import { objectKey } from '#client/object-key.ts';
import type { ControllerParts, EngineController } from '#engine/controllers/engine-controller.ts';
import { SCHEDULER } from '#engine/auth/groups.ts';
import { NAMESPACES, type Namespace, type Node, NODES, type Pod, PODS } from '#engine/controllers/kinds.ts';
import { ClusterState } from '#engine/controllers/scheduler/cluster-state.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import { decidePod, isWaiting, LOOK_AGAIN_MS, type PodWorld } from '#engine/controllers/scheduler/decide-pod.ts';
import type { ClusterView } from '#engine/controllers/scheduler/filters/filter.ts';
import {
  type Claim,
  CLAIMS,
  STORAGE_CLASSES,
  type StorageClass,
  type Volume,
  VOLUMES,
} from '#engine/controllers/scheduler/kinds.ts';
import { podFacts } from '#engine/controllers/scheduler/pod-facts.ts';
import { RememberedRefusals } from '#engine/controllers/scheduler/remembered-refusals.ts';
import { inOrder, WaitingPods } from '#engine/controllers/scheduler/waiting-pods.ts';
import {
  type Happening,
  NAMESPACE_CHANGED,
  ofNode,
  ofPlacedPod,
  STORAGE_CHANGED,
} from '#engine/controllers/scheduler/wake.ts';
import { deepEqual } from '#kube/deep.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';
import { type Clock, timestamp } from '#lib/clock.ts';
import { type ControllerDefinition, type Source, startController } from '#runtime/controller.ts';

export const schedulerController: EngineController = {
  account: SCHEDULER,
  eventSource: 'default-scheduler',
  start(parts) {
    return startController(schedulerDefinition({ ...informersOf(parts), clock: parts.clock }), parts);
  },
};

export interface SchedulerParts {
  readonly pods: Informer<Pod>;
  readonly nodes: Informer<Node>;
  readonly claims: Informer<Claim>;
  readonly volumes: Informer<Volume>;
  readonly storageClasses: Informer<StorageClass>;
  readonly namespaces: Informer<Namespace>;
  readonly clock: Clock;
}

function informersOf({ informer }: Pick<ControllerParts, 'informer'>): Omit<SchedulerParts, 'clock'> {
  return {
    pods: informer(PODS),
    nodes: informer(NODES),
    claims: informer(CLAIMS),
    volumes: informer(VOLUMES),
    storageClasses: informer(STORAGE_CLASSES),
    namespaces: informer(NAMESPACES),
  };
}

type Add = (key: string) => void;

/** Bindings on their way to the disk. */
const CONCURRENCY = 32;

export function schedulerDefinition(parts: SchedulerParts): ControllerDefinition<PodWorld> {
  const { pods, nodes, claims, volumes, storageClasses, namespaces, clock } = parts;
  const state = new ClusterState();
  const waiting = new WaitingPods();
  const refusals = new RememberedRefusals(() => state.generation);
  const cluster: ClusterView = {
    get nodes() {
      return state.nodes;
    },
    namespaceLabels: (namespace) => namespaces.get(namespace)?.metadata.labels,
    claim: (key) => claims.get(key),
    volume: (name) => volumes.get(name),
    storageClass: (name) => storageClasses.get(name),
  };

  function wake(happening: Happening | undefined, add: Add): void {
    if (happening !== undefined) for (const key of waiting.helpedBy(happening)) add(key);
  }

  function learnPod(key: string, old: Stored<Pod> | undefined, next: Stored<Pod> | undefined, add: Add): void {
    const left = state.setPod(key, next);
    const mine = next !== undefined && isWaiting(next);
    if (!mine) waiting.delete(key);
    if (next !== undefined && !mine && !next.spec.nodeName) state.release(key);
    if (mine && (old === undefined || !sameWish(old, next))) add(key);
    const room = left === undefined ? undefined : state.room(left);
    if (room !== undefined) wake({ roomOn: room }, add);
    if (next?.spec.nodeName && !hasEnded(next)) wake(ofPlacedPod(old, next), add);
  }

  const podSource: Source = {
    cache: pods,
    subscribe(add) {
      // What waits already is taken in order of importance.
      const first: [string, Pod][] = [];
      let enqueue: Add = (key) => first.push([key, pods.get(key)!]);
      const leave = pods.onChange((key, change) => learnPod(key, change.old, change.new, (again) => enqueue(again)));
      enqueue = add;
      for (const key of inOrder(first)) add(key);
      return leave;
    },
  };

  /** Changes of a kind that decisions look up directly. */
  function lookedUp<T extends KubeObject>(
    informer: Informer<T>,
    happening: (object: Stored<T>, old: Stored<T> | undefined, next: Stored<T> | undefined) => Happening | undefined,
  ): Source {
    return {
      cache: informer,
      subscribe: (add) =>
        informer.onChange((_, { old, new: next }) => {
          state.touch();
          wake(happening((next ?? old)!, old, next), add);
        }),
    };
  }

  const nodeSource: Source = {
    cache: nodes,
    subscribe: (add) =>
      nodes.onChange((name, { old, new: next }) => {
        const happening = ofNode(old, next);
        // Heartbeats change nothing that is looked at.
        if (happening === undefined) return;
        state.setNode(name, next);
        wake(happening, add);
      }),
  };

  return {
    name: 'scheduler',
    type: PODS,
    sources: [
      nodeSource,
      podSource,
      lookedUp(claims, ({ metadata: { namespace = '', name } }) => ({ claim: { namespace, name } })),
      lookedUp(volumes, () => STORAGE_CHANGED),
      lookedUp(storageClasses, () => STORAGE_CHANGED),
      lookedUp(namespaces, (_, old, next) =>
        deepEqual(old?.metadata.labels, next?.metadata.labels) ? undefined : NAMESPACE_CHANGED,
      ),
    ],
    observe(key) {
      const before = state.release(key);
      const pod = pods.get(key);
      if (pod === undefined || !isWaiting(pod)) return undefined;
      const nowMs = clock.now();
      const toldMs = waiting.toldMs(key) ?? nowMs;
      const tellAgain = nowMs - toldMs >= LOOK_AGAIN_MS;
      return { facts: podFacts(pod), cluster, before, tellAgain, now: timestamp(nowMs) };
    },
    decide(world) {
      const { facts } = world;
      const key = objectKey(facts.pod);
      const { plan, node, waitsFor } = decidePod(world, refusals.schedule);
      if (node !== undefined) state.assume(key, facts, node);
      if (waitsFor === undefined) waiting.delete(key);
      else {
        const told = (plan.events ?? []).length > 0;
        waiting.put(key, { facts, causes: waitsFor }, told ? clock.now() : (waiting.toldMs(key) ?? clock.now()));
      }
      return plan;
    },
    subject: ({ facts }) => facts.pod,
    concurrency: CONCURRENCY,
  };
}

/** What we ourselves say of a pod, and others report, changes nothing of where it may go. */
function sameWish(old: Stored<Pod>, next: Stored<Pod>): boolean {
  return (
    old.metadata.uid === next.metadata.uid &&
    deepEqual(old.spec, next.spec) &&
    deepEqual(old.metadata.labels, next.metadata.labels)
  );
}
