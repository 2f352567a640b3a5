/** What a node writes of its pods: their status, and in the end their removal. Only this very pod, never its successor. */
import type { Writer } from '#client/client.ts';
import { isApiError } from '#kube/api-error.ts';
import { findCondition, type Condition } from '#kube/conditions.ts';
import { PODS, type Pod } from '#kube/core-kinds.ts';
import { deepEqual } from '#kube/deep.ts';
import type { Stored } from '#kube/meta.ts';
import type { PodStatus } from '#node/pods/pod-status.ts';

export interface WriteCall {
  readonly client: Pick<Writer, 'patch' | 'delete'>;
  readonly signal: AbortSignal;
}

/** The pod as it is now; unchanged where there is nothing to say. A pod that is gone meanwhile is none of our business. */
export async function reportPod(
  pod: Stored<Pod>,
  status: PodStatus,
  { client, signal }: WriteCall,
): Promise<Stored<Pod>> {
  if (deepEqual(pod.status, status)) return pod;
  const { name, namespace, uid } = pod.metadata;
  const { phase, hostIP, startTime, containerStatuses } = status;
  const conditions = status.conditions?.map((condition) => overwriting(pod, condition));
  const { reason = null, message = null } = status;
  const said = { phase, reason, message, hostIP, startTime, conditions, containerStatuses };
  const body = { metadata: { uid }, status: said };
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

/** Conditions are merged one by one: what one says no more must be taken out of it by name. */
function overwriting({ status }: Pod, condition: Condition) {
  const old = findCondition(status?.conditions, condition.type);
  return {
    ...condition,
    ...(condition.reason === undefined && old?.reason !== undefined && { reason: null }),
    ...(condition.message === undefined && old?.message !== undefined && { message: null }),
  };
}

/** Nothing of the pod is left here. Deleting it again after that changes nothing. */
export async function removePod({ metadata }: Stored<Pod>, { client, signal }: WriteCall): Promise<void> {
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
