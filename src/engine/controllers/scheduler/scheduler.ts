/**
 * The scheduler: assigns each pod without a node to the best node that it fits on, or reports why it fits on none. It
 * decides one pod at a time; bindings are written concurrently. An assigned pod counts on its node at once
 * (ClusterState.assume), so that the next decision sees it. The scheduler preempts no pods, and ignores pods of other
 * schedulers (spec.schedulerName) and pods with scheduling gates.
 *
 *   waiting ──fits──► bound (pods/binding)
 *     │  ▲  └─fits, volumes wait for their first consumer──► claims get the node ──claims bound──► decided again
 *     ▼  └── a change that may help (wake.ts), or five minutes passed
 *   fits nowhere: PodScheduled=False, FailedScheduling
 */
import type { Informer } from '#client/informer.ts';
import { objectKey } from '#client/object-key.ts';
import type { EngineControllerParts, EngineController } from '#engine/controllers/engine-controller.ts';
import { SCHEDULER } from '#engine/auth/groups.ts';
import {
  ENGINE_NAMESPACES,
  type Namespace,
  type EngineNode,
  ENGINE_NODES,
  type EnginePod,
  ENGINE_PODS,
} from '#engine/controllers/kinds.ts';
import { ClusterState } from '#engine/controllers/scheduler/cluster-state.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import {
  decideUnboundPod,
  needsScheduling,
  RETRY_INTERVAL_MS,
  type UnboundPodWorld,
} from '#engine/controllers/scheduler/decide-unbound-pod.ts';
import type { ClusterView } from '#engine/controllers/scheduler/filters/node-filter.ts';
import {
  type SchedulerClaim,
  SCHEDULER_CLAIMS,
  SCHEDULER_STORAGE_CLASSES,
  type SchedulerStorageClass,
  type SchedulerVolume,
  SCHEDULER_VOLUMES,
} from '#engine/controllers/scheduler/kinds.ts';
import { readPodFacts } from '#engine/controllers/scheduler/pod-facts.ts';
import { RefusalCache } from '#engine/controllers/scheduler/refusal-cache.ts';
import { sortByPriority, WaitingPods } from '#engine/controllers/scheduler/waiting-pods.ts';
import {
  type ClusterEvent,
  NAMESPACE_CHANGED,
  nodeEvent,
  placedPodEvent,
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

interface SchedulerParts {
  readonly pods: Informer<EnginePod>;
  readonly nodes: Informer<EngineNode>;
  readonly claims: Informer<SchedulerClaim>;
  readonly volumes: Informer<SchedulerVolume>;
  readonly storageClasses: Informer<SchedulerStorageClass>;
  readonly namespaces: Informer<Namespace>;
  readonly clock: Clock;
}

function informersOf({ informer }: Pick<EngineControllerParts, 'informer'>): Omit<SchedulerParts, 'clock'> {
  return {
    pods: informer(ENGINE_PODS),
    nodes: informer(ENGINE_NODES),
    claims: informer(SCHEDULER_CLAIMS),
    volumes: informer(SCHEDULER_VOLUMES),
    storageClasses: informer(SCHEDULER_STORAGE_CLASSES),
    namespaces: informer(ENGINE_NAMESPACES),
  };
}

type Add = (key: string) => void;

/** The number of bindings that are written at the same time. */
const CONCURRENCY = 32;

function schedulerDefinition(parts: SchedulerParts): ControllerDefinition<UnboundPodWorld> {
  const { pods, nodes, claims, volumes, storageClasses, namespaces, clock } = parts;
  const state = new ClusterState();
  const waiting = new WaitingPods();
  const refusals = new RefusalCache(() => state.generation);
  const cluster: ClusterView = {
    get nodes() {
      return state.nodes;
    },
    namespaceLabels: (namespace) => namespaces.get(namespace)?.metadata.labels,
    claim: (key) => claims.get(key),
    volume: (name) => volumes.get(name),
    storageClass: (name) => storageClasses.get(name),
  };

  function wake(event: ClusterEvent | undefined, add: Add): void {
    if (event !== undefined) for (const key of waiting.podsHelpedBy(event)) add(key);
  }

  function updatePod(
    key: string,
    old: Stored<EnginePod> | undefined,
    next: Stored<EnginePod> | undefined,
    add: Add,
  ): void {
    const left = state.setPod(key, next);
    const needsNode = next !== undefined && needsScheduling(next);
    if (!needsNode) waiting.delete(key);
    if (next !== undefined && !needsNode && !next.spec.nodeName) state.forgetAssumed(key);
    if (needsNode && (old === undefined || !hasSameRequirements(old, next))) add(key);
    const freedNode = left === undefined ? undefined : state.usage(left);
    if (freedNode !== undefined) wake({ freedNode }, add);
    if (next?.spec.nodeName && !hasEnded(next)) wake(placedPodEvent(old, next), add);
  }

  const podSource: Source = {
    cache: pods,
    subscribe(add) {
      // Pods that already wait are enqueued in the order of their priority.
      const initial: [string, EnginePod][] = [];
      let enqueue: Add = (key) => initial.push([key, pods.get(key)!]);
      const unsubscribe = pods.onChange((key, change) =>
        updatePod(key, change.old, change.new, (again) => enqueue(again)),
      );
      enqueue = add;
      for (const key of sortByPriority(initial)) add(key);
      return unsubscribe;
    },
  };

  /** A source for a kind that decisions read directly from its informer. */
  function changesOf<T extends KubeObject>(
    informer: Informer<T>,
    toEvent: (object: Stored<T>, old: Stored<T> | undefined, next: Stored<T> | undefined) => ClusterEvent | undefined,
  ): Source {
    return {
      cache: informer,
      subscribe: (add) =>
        informer.onChange((_, { old, new: next }) => {
          state.touch();
          wake(toEvent((next ?? old)!, old, next), add);
        }),
    };
  }

  const nodeSource: Source = {
    cache: nodes,
    subscribe: (add) =>
      nodes.onChange((name, { old, new: next }) => {
        const event = nodeEvent(old, next);
        // Heartbeats do not affect decisions.
        if (event === undefined) return;
        state.setNode(name, next);
        wake(event, add);
      }),
  };

  return {
    name: 'scheduler',
    type: ENGINE_PODS,
    sources: [
      nodeSource,
      podSource,
      changesOf(claims, ({ metadata: { namespace = '', name } }) => ({ claim: { namespace, name } })),
      changesOf(volumes, () => STORAGE_CHANGED),
      changesOf(storageClasses, () => STORAGE_CHANGED),
      changesOf(namespaces, (_, old, next) =>
        deepEqual(old?.metadata.labels, next?.metadata.labels) ? undefined : NAMESPACE_CHANGED,
      ),
    ],
    observe(key) {
      const previousNode = state.forgetAssumed(key);
      const pod = pods.get(key);
      if (pod === undefined || !needsScheduling(pod)) return undefined;
      const nowMs = clock.now();
      const reportedMs = waiting.reportedMs(key) ?? nowMs;
      const reportAgain = nowMs - reportedMs >= RETRY_INTERVAL_MS;
      return {
        facts: readPodFacts(pod),
        cluster,
        previousNode,
        reportAgain,
        now: timestamp(nowMs),
      };
    },
    decide(world) {
      const { facts } = world;
      const key = objectKey(facts.pod);
      const { plan, node, waitsFor } = decideUnboundPod(world, refusals.schedule);
      if (node !== undefined) state.assume(key, facts, node);
      if (waitsFor === undefined) waiting.delete(key);
      else {
        const isReported = (plan.events ?? []).length > 0;
        waiting.put(
          key,
          { facts, causes: waitsFor },
          isReported ? clock.now() : (waiting.reportedMs(key) ?? clock.now()),
        );
      }
      return plan;
    },
    subject: ({ facts }) => facts.pod,
    concurrency: CONCURRENCY,
  };
}

/** Reports whether a pod fits on the same nodes as before. Changes of its status do not matter. */
function hasSameRequirements(old: Stored<EnginePod>, next: Stored<EnginePod>): boolean {
  return (
    old.metadata.uid === next.metadata.uid &&
    deepEqual(old.spec, next.spec) &&
    deepEqual(old.metadata.labels, next.metadata.labels)
  );
}
