/**
 * Nodes by their signs of life. One controller looks at nodes (decide-node.ts), one at the pods on them (decide-pod.ts);
 * both share what was seen (node-book.ts). Nodes are never deleted here.
 *
 *   Ready ──no sign for 40 s──► Unknown, tainted unreachable ──► its pods leave as far as they do not tolerate it
 *     ▲                                    │
 *     └────────── a sign of life ◄─────────┘
 */
import type { Informer } from '#client/informer.ts';
import { objectKey } from '#client/object-key.ts';
import type { ControllerParts, EngineController } from '#engine/controllers/engine-controller.ts';
import { decideNode, type NodeWorld } from '#engine/controllers/node-lifecycle/decide-node.ts';
import { decidePodOnNode, evictionMs, type PodOnNodeWorld } from '#engine/controllers/node-lifecycle/decide-pod.ts';
import { LEASE_NAMESPACE, type Lease, LEASES, readyOf } from '#engine/controllers/node-lifecycle/health.ts';
import { NodeBook } from '#engine/controllers/node-lifecycle/node-book.ts';
import { type Node, NODES, type Pod, PODS } from '#engine/controllers/kinds.ts';
import { deepEqual } from '#kube/deep.ts';
import type { Stored } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import { type ControllerDefinition, rechecked, type Source, source, startController } from '#runtime/controller.ts';

export const nodeLifecycleController: EngineController = {
  account: 'node-controller',
  start(parts) {
    const shared = sharedOf(parts);
    return [startController(nodeDefinition(shared), parts), startController(podDefinition(shared), parts)];
  },
};

export interface LifecycleParts {
  readonly nodes: Informer<Node>;
  readonly pods: Informer<Pod>;
  readonly leases: Informer<Lease>;
  readonly book: NodeBook;
  readonly clock: Clock;
}

function sharedOf({ informer, clock }: Pick<ControllerParts, 'informer' | 'clock'>): LifecycleParts {
  const nodes = informer(NODES);
  const leases = informer(LEASES);
  return { nodes, leases, pods: informer(PODS), book: new NodeBook({ nodes, leases }), clock };
}

export function nodeDefinition({ nodes, leases, book, clock }: LifecycleParts): ControllerDefinition<NodeWorld> {
  return {
    name: 'node-lifecycle',
    type: NODES,
    sources: [
      nodesAndWhatTheyMean(nodes),
      source(leases, ({ metadata }) => (metadata.namespace === LEASE_NAMESPACE ? [metadata.name] : [])),
    ],
    observe(name) {
      const node = nodes.get(name);
      if (node === undefined) {
        book.forget(name);
        return undefined;
      }
      const nowMs = clock.now();
      const health = book.learn(node, nowMs);
      // Of no interest while it is well.
      const outage = readyOf(node)?.status === 'True' ? 'none' : book.outage(nowMs);
      return { node, health, outage, nowMs };
    },
    decide: decideNode,
    subject: ({ node }) => node,
  };
}

/** Whether others are ready decides what is done about one that is not. */
function nodesAndWhatTheyMean(nodes: Informer<Node>): Source {
  return {
    cache: nodes,
    subscribe: (add) =>
      nodes.onChange((name, { old, new: next }) => {
        add(name);
        const before = old && readyOf(old)?.status;
        if (before === (next && readyOf(next)?.status)) return;
        for (const { metadata } of nodes.list()) add(metadata.name);
      }),
  };
}

/** Read only for pods on nodes that are not well. */
const LEASE_RECHECK = {
  everyMs: 60_000,
  because:
    'leases are renewed every few seconds; what they mean for pods shows in the state of the node, which is followed',
};

export function podDefinition({
  nodes,
  pods,
  leases,
  book,
  clock,
}: LifecycleParts): ControllerDefinition<PodOnNodeWorld> {
  /** Pods whose time is running. */
  const doomed = new Set<string>();
  const byNode = new Map<string, Set<string>>();
  return {
    name: 'taint-eviction',
    type: PODS,
    sources: [podsOnNodes(pods, byNode), nodesThatMatter(nodes, byNode), rechecked(leases, LEASE_RECHECK)],
    observe(key) {
      const pod = pods.get(key);
      const name = pod?.spec.nodeName ?? '';
      const node = nodes.get(name);
      if (pod === undefined || node === undefined) {
        doomed.delete(key);
        return undefined;
      }
      const wasDoomed = doomed.has(key);
      if (!wasDoomed && !concernsPods(node)) return undefined;
      const nowMs = clock.now();
      const health = book.learn(node, nowMs);
      const outage = concernsPods(node) ? book.outage(nowMs) : 'none';
      const taintedSinceMs: PodOnNodeWorld['taintedSinceMs'] = (taint) => book.taintedSinceMs(name, taint, nowMs);
      return { pod, node, health, outage, taintedSinceMs, wasDoomed, nowMs };
    },
    decide(world) {
      const plan = decidePodOnNode(world);
      const key = objectKey(world.pod);
      if (evictionMs(world) === undefined || world.pod.metadata.deletionTimestamp !== undefined) doomed.delete(key);
      else doomed.add(key);
      return plan;
    },
    subject: ({ pod }) => pod,
  };
}

function concernsPods(node: Node): boolean {
  const ready = readyOf(node)?.status;
  if (ready !== undefined && ready !== 'True') return true;
  return (node.spec?.taints ?? []).some(({ effect }) => effect === 'NoExecute');
}

function podsOnNodes(pods: Informer<Pod>, byNode: Map<string, Set<string>>): Source {
  const placeOf = (pod: Stored<Pod> | undefined) => pod?.spec.nodeName ?? '';
  return {
    cache: pods,
    subscribe: (add) =>
      pods.onChange((key, { old, new: next }) => {
        const [from, to] = [placeOf(old), placeOf(next)];
        if (from !== to && byNode.get(from)?.delete(key) && byNode.get(from)?.size === 0) byNode.delete(from);
        if (to !== '') byNode.set(to, (byNode.get(to) ?? new Set()).add(key));
        if (from !== '' || to !== '') add(key);
      }),
  };
}

/** Heartbeats come every few seconds; only what concerns pods makes them be looked at. */
function nodesThatMatter(nodes: Informer<Node>, byNode: ReadonlyMap<string, ReadonlySet<string>>): Source {
  const view = (node: Node | undefined) =>
    node && [readyOf(node)?.status, (node.spec?.taints ?? []).filter(({ effect }) => effect === 'NoExecute')];
  return {
    cache: nodes,
    subscribe: (add) =>
      nodes.onChange((name, { old, new: next }) => {
        if (!deepEqual(view(old), view(next))) for (const key of byNode.get(name) ?? []) add(key);
      }),
  };
}
