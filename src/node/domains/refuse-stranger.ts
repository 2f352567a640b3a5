/** A pod that looks like a launcher and is not the one of its instance runs nothing, and touches no guest. */
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { ActParts } from '#node/domains/act.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import { podStatus, refusedView } from '#node/pods/pod-status.ts';
import { removePod, reportPod } from '#node/pods/pod-writer.ts';

const REFUSED = refusedView('InstanceMismatch', 'The labels of this pod name an instance that it does not belong to.');

export async function refuseStranger(pod: Stored<Pod>, parts: ActParts): Promise<void> {
  if (pod.metadata.deletionTimestamp !== undefined) {
    if (pod.metadata.deletionGracePeriodSeconds !== 0) await removePod(pod, parts);
    return;
  }
  if (hasEnded(pod)) return;
  const { node, clock, ownPods } = parts;
  ownPods.wrote(await reportPod(pod, podStatus(pod, REFUSED, { hostIp: node.hostIp, nowMs: clock.now() }), parts));
}
