/**
 * Removes pods that no node agent will ever end: bound to a node that does not exist, or under deletion without a node.
 * Like Kubernetes' podgc, it sets them to Failed and force-deletes them. It gives a missing node time to appear, and asks
 * the API before it acts.
 *
 *   bound ──node missing──► in quarantine for 40 s ──the API confirms that the node is missing──► Failed, deleted
 */
import type { Reader } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { objectKey } from '#client/object-key.ts';
import { ENGINE_NODES, ENGINE_PODS, type EnginePod } from '#engine/controllers/kinds.ts';
import type { EngineController } from '#engine/controllers/engine-controller.ts';
import { isApiError } from '#kube/api-error.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';
import { timestamp, type Clock } from '#lib/clock.ts';
import { defineController, source, startController, type Source } from '#runtime/controller.ts';
import { EMPTY_PLAN, type Change, type Plan } from '#runtime/plan.ts';

export const QUARANTINE_MS = 40_000;
/** The maximum number of missing nodes that are remembered. */
const MAX_MISSING_NODES = 10_000;

export interface CollectedPodWorld {
  readonly pod: Stored<EnginePod>;
  /**
   * `missing`: not in the cache for this time. `deleted`: the quarantine is over and the API confirms that the node does
   * not exist. `unbound`: the pod has no node.
   */
  readonly node:
    | { readonly state: 'unbound' | 'present' | 'deleted' }
    | { readonly state: 'missing'; readonly forMs: number };
  readonly now: string;
}

/** Decides whether one pod is removed. Pure. */
export function decideCollectedPod({ pod, node, now }: CollectedPodWorld): Plan {
  switch (node.state) {
    case 'missing':
      return { changes: [], requeueAfterMs: Math.max(0, QUARANTINE_MS - node.forMs) };
    case 'deleted': {
      const condition = {
        type: 'DisruptionTarget',
        status: 'True',
        reason: 'DeletionByPodGC',
        message: 'PodGC: node no longer exists',
        lastTransitionTime: now,
      };
      return { changes: removePod(pod, 'its node no longer exists', [condition]) };
    }
    case 'unbound':
      if (pod.metadata.deletionTimestamp === undefined) return EMPTY_PLAN;
      return { changes: removePod(pod, 'it is under deletion and was never bound to a node', []) };
    default:
      return EMPTY_PLAN;
  }
}

function removePod(pod: Stored<EnginePod>, why: string, conditions: readonly object[]): Change[] {
  const { name, namespace, uid, deletionTimestamp, deletionGracePeriodSeconds } = pod.metadata;
  const target = { type: ENGINE_PODS, name: { name, namespace }, uid, why };
  const changes: Change[] = [];
  const { phase } = pod.status ?? {};
  if (phase !== 'Succeeded' && phase !== 'Failed') {
    const status = { phase: 'Failed', ...(conditions.length > 0 ? { conditions } : {}) };
    changes.push({ ...target, do: 'patch', subresource: 'status', patch: { type: 'strategic', body: { status } } });
  }
  // A pod that was already force-deleted waits for its finalizers.
  const forced = deletionTimestamp !== undefined && (deletionGracePeriodSeconds ?? 0) === 0;
  if (!forced) changes.push({ ...target, do: 'delete', gracePeriodSeconds: 0 });
  return changes;
}

export const podGarbageCollector: EngineController = {
  account: 'pod-garbage-collector',
  start: (parts) =>
    startController(podCollectionController({ ...parts, reader: parts.client, ...informersOf(parts) }), parts),
};

interface Informers {
  readonly pods: Informer<EnginePod>;
  readonly nodes: Informer<KubeObject>;
}

function informersOf({ informer }: Pick<Parameters<EngineController['start']>[0], 'informer'>): Informers {
  return { pods: informer(ENGINE_PODS), nodes: informer(ENGINE_NODES) };
}

function podCollectionController({
  reader,
  pods,
  nodes,
  clock,
}: Informers & { readonly reader: Pick<Reader, 'get'>; readonly clock: Clock }) {
  /** By node name. In memory only: losing it restarts the quarantine. */
  const missingSince = new Map<string, number>();

  function missingForMs(name: string): number {
    const now = clock.now();
    const since = missingSince.get(name) ?? now;
    if (missingSince.size >= MAX_MISSING_NODES && !missingSince.has(name)) missingSince.clear();
    missingSince.set(name, since);
    return now - since;
  }

  async function nodeOf(pod: Stored<EnginePod>, signal: AbortSignal): Promise<CollectedPodWorld['node']> {
    const name = pod.spec?.nodeName ?? '';
    if (name === '') return { state: 'unbound' };
    if (nodes.get(name) !== undefined) return { state: 'present' };
    const forMs = missingForMs(name);
    if (forMs < QUARANTINE_MS) return { state: 'missing', forMs };
    return { state: (await nodeExists(reader, name, signal)) ? 'present' : 'deleted' };
  }

  return defineController<CollectedPodWorld>({
    name: 'pod-garbage-collector',
    type: ENGINE_PODS,
    sources: [source(pods), nodeAdditionsAndDeletions(nodes, pods, (name) => missingSince.delete(name))],
    async observe(key, { signal }) {
      const pod = pods.get(key);
      if (pod === undefined) return undefined;
      return { pod, node: await nodeOf(pod, signal), now: timestamp(clock.now()) };
    },
    decide: decideCollectedPod,
    // No Events, as in Kubernetes: the pods are deleted.
    subject: () => undefined,
  });
}

async function nodeExists(reader: Pick<Reader, 'get'>, name: string, signal: AbortSignal): Promise<boolean> {
  try {
    await reader.get(ENGINE_NODES, { name }, { signal });
    return true;
  } catch (error) {
    if (isApiError(error, 'NotFound') && error.details?.name === name) return false;
    throw error;
  }
}

/** A source that enqueues the pods of nodes that were added or deleted. Heartbeats are ignored. */
function nodeAdditionsAndDeletions(
  nodes: Informer<KubeObject>,
  pods: Informer<EnginePod>,
  onNodeAdded: (name: string) => void,
): Source {
  return {
    cache: nodes,
    subscribe: (add) =>
      nodes.onChange((name, { old, new: next }) => {
        if (old !== undefined && next !== undefined) return;
        if (next !== undefined) onNodeAdded(name);
        for (const pod of pods.list()) if (pod.spec?.nodeName === name) add(objectKey(pod));
      }),
  };
}
