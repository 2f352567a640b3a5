/** Ownership of pods: a Job adopts pods that it selects and that have no controller, and releases pods it does not select. */
import { ownerReference } from '#engine/controllers/job/build-pod.ts';
import type { JobWorld } from '#engine/controllers/job/job-world.ts';
import { type EnginePod, ENGINE_PODS } from '#engine/controllers/kinds.ts';
import { type BatchJob, TRACKING_FINALIZER } from '#engine/controllers/job/kinds.ts';
import { isTracked } from '#engine/controllers/job/pod-state.ts';
import { labelRequirementsOf, matchesLabels } from '#kube/selectors/label-selector.ts';
import type { Stored } from '#kube/meta.ts';
import type { Change } from '#runtime/plan.ts';

/** The maximum number of pods that one plan adopts or releases. */
const MAX_OWNER_CHANGES = 40;

export function selects({ spec }: BatchJob, { metadata }: EnginePod): boolean {
  return spec.selector !== undefined && matchesLabels(labelRequirementsOf(spec.selector), metadata.labels);
}

/** Releases the Job's pods that its selector no longer matches. */
export function releaseUnselected({ job, pods }: JobWorld): Change[] {
  const unselected = pods.filter((pod) => !selects(job, pod));
  return unselected.slice(0, MAX_OWNER_CHANGES).map((pod) => {
    const others = (pod.metadata.ownerReferences ?? []).filter(({ uid }) => uid !== job.metadata.uid);
    const metadata = { ownerReferences: others, finalizers: withoutTracking(pod) };
    return replaceMetadata(pod, metadata, 'the selector of the Job no longer matches the pod');
  });
}

/** Reports whether the Job would adopt one of these pods. */
export function wouldAdopt(job: Stored<BatchJob>, orphans: readonly Stored<EnginePod>[]): boolean {
  return findAdoptable(job, orphans).length > 0;
}

function findAdoptable(job: Stored<BatchJob>, orphans: readonly Stored<EnginePod>[]): readonly Stored<EnginePod>[] {
  if (job.metadata.deletionTimestamp !== undefined) return [];
  return orphans.filter((pod) => pod.metadata.deletionTimestamp === undefined);
}

export function adoptOrphans({ job, orphans }: JobWorld): Change[] {
  return findAdoptable(job, orphans)
    .slice(0, MAX_OWNER_CHANGES)
    .map((pod) => {
      const ownerReferences = [...(pod.metadata.ownerReferences ?? []), ownerReference(job)];
      const finalizers = [...withoutTracking(pod), TRACKING_FINALIZER];
      return replaceMetadata(pod, { ownerReferences, finalizers }, 'the Job selects the pod, which has no controller');
    });
}

/** Replaces lists in the pod's metadata. The patch contains the resourceVersion, because the lists may have changed. */
function replaceMetadata(pod: Stored<EnginePod>, metadata: object, why: string): Change {
  const { namespace, name, uid, resourceVersion } = pod.metadata;
  const body = { metadata: { ...metadata, resourceVersion } };
  return { do: 'patch', type: ENGINE_PODS, name: { namespace, name }, uid, patch: { type: 'merge', body }, why };
}

function withoutTracking({ metadata }: EnginePod): string[] {
  return (metadata.finalizers ?? []).filter((finalizer) => finalizer !== TRACKING_FINALIZER);
}

/** Removes the tracking finalizer. Does nothing for a pod without it. */
export function removeTracking(pod: Stored<EnginePod>, why: string): Change {
  const { namespace, name, uid } = pod.metadata;
  const body = { metadata: { '$deleteFromPrimitiveList/finalizers': [TRACKING_FINALIZER] } };
  return { do: 'patch', type: ENGINE_PODS, name: { namespace, name }, uid, patch: { type: 'strategic', body }, why };
}

/** Removes the tracking finalizer if the pod is unchanged. Another Job may adopt the pod at the same time. */
export function removeStrayTracking(pod: Stored<EnginePod>, why: string): Change[] {
  return isTracked(pod) ? [replaceMetadata(pod, { finalizers: withoutTracking(pod) }, why)] : [];
}
