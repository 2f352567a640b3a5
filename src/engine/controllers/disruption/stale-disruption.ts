/** Resets condition DisruptionTarget of pods that were not evicted within two minutes. The decision is pure. */
import type { Informer } from '#client/informer.ts';
import { type EnginePod, ENGINE_PODS } from '#engine/controllers/kinds.ts';
import { findCondition } from '#kube/conditions.ts';
import type { Stored } from '#kube/meta.ts';
import { type Clock, timestamp } from '#lib/clock.ts';
import { type ControllerDefinition, source } from '#runtime/controller.ts';
import { EMPTY_PLAN, type Plan } from '#runtime/plan.ts';

interface MarkedPodWorld {
  readonly pod: Stored<EnginePod>;
  readonly nowMs: number;
}

const STALE_MS = 2 * 60_000;
const TARGET = 'DisruptionTarget';
/** The reason that nodes set. It is not reset, because nodes set it long before they end the pod. */
const BY_NODE = 'TerminationByKubelet';

export function decideMarkedPod({ pod, nowMs }: MarkedPodWorld): Plan {
  const since = markedSince(pod);
  if (since === undefined) return EMPTY_PLAN;
  const leftMs = Date.parse(since) + STALE_MS - nowMs;
  if (leftMs > 0) return { changes: [], requeueAfterMs: leftMs };
  const { namespace, name, uid } = pod.metadata;
  const condition = {
    type: TARGET,
    status: 'False',
    reason: null,
    message: null,
    lastTransitionTime: timestamp(nowMs),
  };
  const patch = { type: 'strategic' as const, body: { status: { conditions: [condition] } } };
  const why = 'the pod was marked for eviction, but was not evicted';
  return {
    changes: [{ do: 'patch', type: ENGINE_PODS, name: { namespace, name }, uid, subresource: 'status', patch, why }],
  };
}

function markedSince({ metadata, status }: Stored<EnginePod>): string | undefined {
  const condition = findCondition(status?.conditions, TARGET);
  const ended = status?.phase === 'Succeeded' || status?.phase === 'Failed';
  if (metadata.deletionTimestamp !== undefined || ended) return undefined;
  if (condition?.status !== 'True' || condition.reason === BY_NODE) return undefined;
  return condition.lastTransitionTime;
}

export function staleDisruptionController(
  pods: Informer<EnginePod>,
  clock: Clock,
): ControllerDefinition<MarkedPodWorld> {
  return {
    name: 'stale-disruption',
    type: ENGINE_PODS,
    sources: [
      source(pods, (pod) => (markedSince(pod) === undefined ? [] : [`${pod.metadata.namespace}/${pod.metadata.name}`])),
    ],
    observe(key) {
      const pod = pods.get(key);
      return pod && { pod, nowMs: clock.now() };
    },
    decide: decideMarkedPod,
    subject: () => undefined,
  };
}
