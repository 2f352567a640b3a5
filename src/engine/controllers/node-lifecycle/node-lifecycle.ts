/**
 * Detects lost nodes. One controller handles nodes (decide-node.ts), another one the pods on them (decide-pod-on-node.ts).
 * Both share the records of nodes (node-records.ts). Nodes are never deleted here.
 *
 *   Ready ──no report for 40 s──► Unknown, tainted unreachable ──► pods that do not tolerate the taint are evicted
 *     ▲                                    │
 *     └────────────── a report ◄───────────┘
 */
import type { Informer } from '#client/informer.ts';
import { objectKey } from '#client/object-key.ts';
import type { EngineControllerParts, EngineController } from '#engine/controllers/engine-controller.ts';
import { decideNode, type NodeWorld } from '#engine/controllers/node-lifecycle/decide-node.ts';
import {
  decidePodOnNode,
  evictionTimeMs,
  type PodOnNodeWorld,
} from '#engine/controllers/node-lifecycle/decide-pod-on-node.ts';
import { LEASE_NAMESPACE, readyCondition } from '#engine/controllers/node-lifecycle/health.ts';
import { NodeRecords } from '#engine/controllers/node-lifecycle/node-records.ts';
import { type EngineNode, ENGINE_NODES, type EnginePod, ENGINE_PODS } from '#engine/controllers/kinds.ts';
import { LEASES, type Lease } from '#kube/core-kinds.ts';
import { deepEqual } from '#kube/deep.ts';
import type { Stored } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import {
  type ControllerDefinition,
  recheckedSource,
  type Source,
  source,
  startController,
} from '#runtime/controller.ts';

export const nodeLifecycleController: EngineController = {
  account: 'node-controller',
  start(parts) {
    const shared = sharedParts(parts);
    return [startController(nodeDefinition(shared), parts), startController(podDefinition(shared), parts)];
  },
};

interface LifecycleParts {
  readonly nodes: Informer<EngineNode>;
  readonly pods: Informer<EnginePod>;
  readonly leases: Informer<Lease>;
  readonly records: NodeRecords;
  readonly clock: Clock;
}

function sharedParts({ informer, clock }: Pick<EngineControllerParts, 'informer' | 'clock'>): LifecycleParts {
  const nodes = informer(ENGINE_NODES);
  const leases = informer(LEASES);
  return { nodes, leases, pods: informer(ENGINE_PODS), records: new NodeRecords({ nodes, leases }), clock };
}

function nodeDefinition({ nodes, leases, records, clock }: LifecycleParts): ControllerDefinition<NodeWorld> {
  return {
    name: 'node-lifecycle',
    type: ENGINE_NODES,
    sources: [
      nodeSource(nodes),
      source(leases, ({ metadata }) => (metadata.namespace === LEASE_NAMESPACE ? [metadata.name] : [])),
    ],
    observe(name) {
      const node = nodes.get(name);
      if (node === undefined) {
        records.delete(name);
        return undefined;
      }
      const nowMs = clock.now();
      const health = records.update(node, nowMs);
      // An outage matters only for nodes that are not ready.
      const outage = readyCondition(node)?.status === 'True' ? 'none' : records.outage(nowMs);
      return { node, health, outage, nowMs };
    },
    decide: decideNode,
    subject: ({ node }) => node,
  };
}

/** A source that enqueues all nodes when one becomes ready or not ready, because an outage affects all decisions. */
function nodeSource(nodes: Informer<EngineNode>): Source {
  return {
    cache: nodes,
    subscribe: (add) =>
      nodes.onChange((name, { old, new: next }) => {
        add(name);
        const before = old && readyCondition(old)?.status;
        if (before === (next && readyCondition(next)?.status)) return;
        for (const { metadata } of nodes.list()) add(metadata.name);
      }),
  };
}

/** Leases are read only for pods on nodes that are not ready or have NoExecute taints. */
const LEASE_RECHECK = {
  everyMs: 60_000,
  because:
    'leases are renewed every few seconds; their effect on pods is visible in the state of the node, which is watched',
};

function podDefinition({ nodes, pods, leases, records, clock }: LifecycleParts): ControllerDefinition<PodOnNodeWorld> {
  /** The keys of pods whose eviction is scheduled. */
  const pendingEvictions = new Set<string>();
  const byNode = new Map<string, Set<string>>();
  return {
    name: 'taint-eviction',
    type: ENGINE_PODS,
    sources: [podSource(pods, byNode), nodeSourceForPods(nodes, byNode), recheckedSource(leases, LEASE_RECHECK)],
    observe(key) {
      const pod = pods.get(key);
      const name = pod?.spec.nodeName ?? '';
      const node = nodes.get(name);
      if (pod === undefined || node === undefined) {
        pendingEvictions.delete(key);
        return undefined;
      }
      const wasEvictionPending = pendingEvictions.has(key);
      if (!wasEvictionPending && !affectsPods(node)) return undefined;
      const nowMs = clock.now();
      const health = records.update(node, nowMs);
      const outage = affectsPods(node) ? records.outage(nowMs) : 'none';
      const taintedSinceMs: PodOnNodeWorld['taintedSinceMs'] = (taint) => records.taintedSinceMs(name, taint, nowMs);
      return { pod, node, health, outage, taintedSinceMs, wasEvictionPending, nowMs };
    },
    decide(world) {
      const plan = decidePodOnNode(world);
      const key = objectKey(world.pod);
      if (evictionTimeMs(world) === undefined || world.pod.metadata.deletionTimestamp !== undefined)
        pendingEvictions.delete(key);
      else pendingEvictions.add(key);
      return plan;
    },
    subject: ({ pod }) => pod,
  };
}

function affectsPods(node: EngineNode): boolean {
  const ready = readyCondition(node)?.status;
  if (ready !== undefined && ready !== 'True') return true;
  return (node.spec?.taints ?? []).some(({ effect }) => effect === 'NoExecute');
}

function podSource(pods: Informer<EnginePod>, byNode: Map<string, Set<string>>): Source {
  const nodeNameOf = (pod: Stored<EnginePod> | undefined) => pod?.spec.nodeName ?? '';
  return {
    cache: pods,
    subscribe: (add) =>
      pods.onChange((key, { old, new: next }) => {
        const [from, to] = [nodeNameOf(old), nodeNameOf(next)];
        if (from !== to && byNode.get(from)?.delete(key) && byNode.get(from)?.size === 0) byNode.delete(from);
        if (to !== '') byNode.set(to, (byNode.get(to) ?? new Set()).add(key));
        if (from !== '' || to !== '') add(key);
      }),
  };
}

/** A source that enqueues the pods of a node when its readiness or NoExecute taints change. Heartbeats are ignored. */
function nodeSourceForPods(nodes: Informer<EngineNode>, byNode: ReadonlyMap<string, ReadonlySet<string>>): Source {
  const view = (node: EngineNode | undefined) =>
    node && [readyCondition(node)?.status, (node.spec?.taints ?? []).filter(({ effect }) => effect === 'NoExecute')];
  return {
    cache: nodes,
    subscribe: (add) =>
      nodes.onChange((name, { old, new: next }) => {
        if (!deepEqual(view(old), view(next))) for (const key of byNode.get(name) ?? []) add(key);
      }),
  };
}
