/** Fails a pod that has the labels of a launcher without being the launcher of the instance. No guest is affected. */
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { DomainActionParts } from '#node/domains/domain-action-parts.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import { buildPodStatus, refusedView } from '#node/pods/pod-status.ts';
import { removePod, reportPod } from '#node/pods/pod-writer.ts';

const REFUSED = refusedView(
  'InstanceMismatch',
  'The labels of this pod name a VirtualMachineInstance that it does not belong to.',
);

export async function refuseMismatchedPod(pod: Stored<Pod>, parts: DomainActionParts): Promise<void> {
  if (pod.metadata.deletionTimestamp !== undefined) {
    if (pod.metadata.deletionGracePeriodSeconds !== 0) await removePod(pod, parts);
    return;
  }
  if (hasEnded(pod)) return;
  const { node, clock, ownPods } = parts;
  ownPods.record(
    await reportPod(pod, buildPodStatus(pod, REFUSED, { hostIp: node.hostIp, nowMs: clock.now() }), parts),
  );
}
