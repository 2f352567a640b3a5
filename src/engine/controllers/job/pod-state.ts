/** Properties of pods that the Job controller uses. Pure. */
import { hasEnded } from '#kube/pod-phase.ts';
import { type Indexes, indexesOf } from '#engine/controllers/job/indexes.ts';
import { type EnginePod } from '#engine/controllers/kinds.ts';
import { TRACKING_FINALIZER, replacesEndedPodsOnly } from '#engine/controllers/job/kinds.ts';
import type { JobSpec } from '#engine/registry/kinds/job/job-schema.ts';
import { findCondition, isTrue } from '#kube/conditions.ts';

export const INDEX_KEY = 'batch.kubernetes.io/job-completion-index';

/** Reports whether the pod is not counted in the Job's status yet. */
export function isTracked({ metadata }: EnginePod): boolean {
  return metadata.finalizers?.includes(TRACKING_FINALIZER) ?? false;
}

export function hasSucceeded({ status }: EnginePod): boolean {
  return status?.phase === 'Succeeded';
}

function isDeleting({ metadata }: EnginePod): boolean {
  return metadata.deletionTimestamp !== undefined;
}

export function isActiveJobPod(pod: EnginePod): boolean {
  return !hasEnded(pod) && !isDeleting(pod);
}

export function isTerminatingJobPod(pod: EnginePod): boolean {
  return !hasEnded(pod) && isDeleting(pod);
}

export function isReadyJobPod({ status }: EnginePod): boolean {
  return isTrue(status?.conditions, 'Ready');
}

/**
 * Reports whether the pod counts as failed. A pod under deletion does, because its node may never report the end, unless
 * the Job waits for the end.
 */
export function hasFailed(pod: EnginePod, spec: JobSpec): boolean {
  if (pod.status?.phase === 'Failed') return true;
  return isTerminatingJobPod(pod) && !replacesEndedPodsOnly(spec);
}

/** Returns undefined if the pod has no index or one that is out of range. */
export function completionIndex({ metadata }: EnginePod, { completions = 0 }: JobSpec): number | undefined {
  const text = metadata.annotations?.[INDEX_KEY];
  if (text === undefined || !/^[0-9]{1,10}$/.test(text)) return undefined;
  const index = Number(text);
  return index < completions ? index : undefined;
}

export function indexesIn(pods: readonly EnginePod[], spec: JobSpec): Indexes {
  return indexesOf(pods.map((pod) => completionIndex(pod, spec)).filter((index) => index !== undefined));
}

/** Estimates when the pod ended: from its containers, else readiness, else deletion, else creation. */
export function finishedAtMs(pod: EnginePod): number {
  const { metadata, status } = pod;
  const byContainers = lastContainerEndMs(pod);
  if (byContainers !== undefined) return byContainers;
  const ready = findCondition(status?.conditions, 'Ready');
  if (ready?.status === 'False' && ready.lastTransitionTime !== undefined) return Date.parse(ready.lastTransitionTime);
  if (metadata.deletionTimestamp !== undefined) {
    return Date.parse(metadata.deletionTimestamp) - (metadata.deletionGracePeriodSeconds ?? 0) * 1000;
  }
  return Date.parse(metadata.creationTimestamp ?? '') || 0;
}

function lastContainerEndMs({ spec, status }: EnginePod): number | undefined {
  const sidecars = new Set(
    (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always').map(({ name }) => name),
  );
  const watched = [
    ...(status?.containerStatuses ?? []),
    ...(status?.initContainerStatuses ?? []).filter(({ name }) => sidecars.has(name)),
  ];
  let lastMs: number | undefined;
  for (const { state } of watched) {
    const finishedAt = state?.terminated?.finishedAt;
    if (finishedAt === undefined) return undefined;
    lastMs = Math.max(lastMs ?? 0, Date.parse(finishedAt));
  }
  return lastMs;
}
