/**
 * Pods that nobody will ever finish: bound to a node that is no more, or under deletion without a node. They are marked
 * Failed and removed by force, as Kubernetes' podgc does. A missing node is given time to show up, and the API is asked
 * before anything is done.
 *
 *   bound ──node missing──► in quarantine for 40 s ──node still missing, also by a live look──► Failed, deleted
 */
import type { Reader } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { objectKey } from '#client/object-key.ts';
import { NODES, PODS, type Pod } from '#engine/controllers/kinds.ts';
import type { EngineController } from '#engine/controllers/engine-controller.ts';
import { isApiError } from '#kube/api-error.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';
import { timestamp, type Clock } from '#lib/clock.ts';
import { defineController, source, startController, type Source } from '#runtime/controller.ts';
import { NOTHING, type Change, type Plan } from '#runtime/plan.ts';

export const QUARANTINE_MS = 40_000;
/** Nodes that are missed at a time. */
const MAX_MISSED = 10_000;

export interface PodWorld {
  readonly pod: Stored<Pod>;
  /** `missed`: no watch shows it, for so long. `gone`: the quarantine is over and the API does not know it. */
  readonly node: { readonly is: 'none' | 'there' | 'gone' } | { readonly is: 'missed'; readonly forMs: number };
  readonly now: string;
}

/** Pure. */
export function decidePod({ pod, node, now }: PodWorld): Plan {
  switch (node.is) {
    case 'missed':
      return { changes: [], requeueAfterMs: Math.max(0, QUARANTINE_MS - node.forMs) };
    case 'gone': {
      const condition = {
        type: 'DisruptionTarget',
        status: 'True',
        reason: 'DeletionByPodGC',
        message: 'PodGC: node no longer exists',
        lastTransitionTime: now,
      };
      return { changes: removal(pod, 'its node no longer exists', [condition]) };
    }
    case 'none':
      if (pod.metadata.deletionTimestamp === undefined) return NOTHING;
      return { changes: removal(pod, 'it is under deletion and was never bound to a node', []) };
    default:
      return NOTHING;
  }
}

function removal(pod: Stored<Pod>, why: string, conditions: readonly object[]): Change[] {
  const { name, namespace, uid, deletionTimestamp, deletionGracePeriodSeconds } = pod.metadata;
  const target = { type: PODS, name: { name, namespace }, uid, why };
  const changes: Change[] = [];
  const { phase } = pod.status ?? {};
  if (phase !== 'Succeeded' && phase !== 'Failed') {
    const status = { phase: 'Failed', ...(conditions.length > 0 ? { conditions } : {}) };
    changes.push({ ...target, do: 'patch', subresource: 'status', patch: { type: 'strategic', body: { status } } });
  }
  // Finalizers may hold it after that; then there is nothing more to do here.
  const forced = deletionTimestamp !== undefined && (deletionGracePeriodSeconds ?? 0) === 0;
  if (!forced) changes.push({ ...target, do: 'delete', gracePeriodSeconds: 0 });
  return changes;
}

export const podGarbageCollector: EngineController = {
  account: 'pod-garbage-collector',
  start: (parts) => startController(podController({ ...parts, reader: parts.client, ...informersOf(parts) }), parts),
};

interface Informers {
  readonly pods: Informer<Pod>;
  readonly nodes: Informer<KubeObject>;
}

function informersOf({ informer }: Pick<Parameters<EngineController['start']>[0], 'informer'>): Informers {
  return { pods: informer(PODS), nodes: informer(NODES) };
}

export function podController({
  reader,
  pods,
  nodes,
  clock,
}: Informers & { readonly reader: Pick<Reader, 'get'>; readonly clock: Clock }) {
  /** By name of node; nothing is lost with it but time. */
  const missedSince = new Map<string, number>();

  function missedForMs(name: string): number {
    const now = clock.now();
    const since = missedSince.get(name) ?? now;
    if (missedSince.size >= MAX_MISSED && !missedSince.has(name)) missedSince.clear();
    missedSince.set(name, since);
    return now - since;
  }

  async function nodeOf(pod: Stored<Pod>, signal: AbortSignal): Promise<PodWorld['node']> {
    const name = pod.spec?.nodeName ?? '';
    if (name === '') return { is: 'none' };
    if (nodes.get(name) !== undefined) return { is: 'there' };
    const forMs = missedForMs(name);
    if (forMs < QUARANTINE_MS) return { is: 'missed', forMs };
    return { is: (await exists(reader, name, signal)) ? 'there' : 'gone' };
  }

  return defineController<PodWorld>({
    name: 'pod-garbage-collector',
    type: PODS,
    sources: [source(pods), nodesThatComeAndGo(nodes, pods, (name) => missedSince.delete(name))],
    async observe(key, { signal }) {
      const pod = pods.get(key);
      if (pod === undefined) return undefined;
      return { pod, node: await nodeOf(pod, signal), now: timestamp(clock.now()) };
    },
    decide: decidePod,
    // Kubernetes tells no Events of it either: the pods are about to be gone.
    subject: () => undefined,
  });
}

async function exists(reader: Pick<Reader, 'get'>, name: string, signal: AbortSignal): Promise<boolean> {
  try {
    await reader.get(NODES, { name }, { signal });
    return true;
  } catch (error) {
    if (isApiError(error, 'NotFound') && error.details?.name === name) return false;
    throw error;
  }
}

/** Nodes report every few seconds: only those that come or go make their pods be looked at. */
function nodesThatComeAndGo(nodes: Informer<KubeObject>, pods: Informer<Pod>, seen: (name: string) => void): Source {
  return {
    cache: nodes,
    subscribe: (add) =>
      nodes.onChange((name, { old, new: next }) => {
        if (old !== undefined && next !== undefined) return;
        if (next !== undefined) seen(name);
        for (const pod of pods.list()) if (pod.spec?.nodeName === name) add(objectKey(pod));
      }),
  };
}
