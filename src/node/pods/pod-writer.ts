/** Writes the status of a node's pods and deletes them. Writes carry the uid, so that a new pod of the same name is safe. */
import type { Writer } from '#client/client.ts';
import { isApiError } from '#kube/api-error.ts';
import { findCondition, type Condition } from '#kube/conditions.ts';
import { PODS, type Pod } from '#kube/core-kinds.ts';
import { deepEqual } from '#kube/deep.ts';
import type { Stored } from '#kube/meta.ts';
import type { PodStatus } from '#node/pods/pod-status.ts';

interface PodWriterParts {
  readonly client: Pick<Writer, 'patch' | 'delete'>;
  readonly signal: AbortSignal;
}

/** Writes the status if it differs, and returns the pod as written. Ignores a pod that is gone. */
export async function reportPod(
  pod: Stored<Pod>,
  status: PodStatus,
  { client, signal }: PodWriterParts,
): Promise<Stored<Pod>> {
  if (deepEqual(pod.status, status)) return pod;
  const { name, namespace, uid } = pod.metadata;
  const { phase, hostIP, podIP, podIPs, startTime, containerStatuses } = status;
  const conditions = status.conditions?.map((condition) => clearRemovedFields(pod, condition));
  const { reason = null, message = null } = status;
  const written = { phase, reason, message, hostIP, podIP, podIPs, startTime, conditions, containerStatuses };
  const body = { metadata: { uid }, status: written };
  try {
    return await client.patch(
      PODS,
      { name, namespace },
      { type: 'strategic', body },
      { subresource: 'status', signal },
    );
  } catch (error) {
    if (isGone(error)) return pod;
    throw error;
  }
}

/** Sets reason and message to null if they are to be removed, because the API merges conditions field by field. */
function clearRemovedFields({ status }: Pod, condition: Condition) {
  const old = findCondition(status?.conditions, condition.type);
  return {
    ...condition,
    ...(condition.reason === undefined && old?.reason !== undefined && { reason: null }),
    ...(condition.message === undefined && old?.message !== undefined && { message: null }),
  };
}

/** Deletes a pod of which nothing is left on this node. May be repeated. */
export async function removePod({ metadata }: Stored<Pod>, { client, signal }: PodWriterParts): Promise<void> {
  const { name, namespace, uid } = metadata;
  try {
    await client.delete(PODS, { name, namespace }, { uid, gracePeriodSeconds: 0, signal });
  } catch (error) {
    if (!isGone(error)) throw error;
  }
}

function isGone(error: unknown): boolean {
  return isApiError(error, 'NotFound') || isApiError(error, 'Conflict');
}
