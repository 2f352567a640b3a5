/** The meaning of a pod's phase and conditions. Pure. */
import { findCondition } from '#kube/conditions.ts';
import type { Pod } from '#kube/core-kinds.ts';

/** Reports whether all containers of the pod have ended, with success or failure, and will not restart. */
export function hasEnded({ status }: { readonly status?: { readonly phase?: string } }): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}

/** Returns why the pod is being removed from its node, or undefined if it is not. */
export function disruptionReason({ status }: Pod): string | undefined {
  const condition = findCondition(status?.conditions, 'DisruptionTarget');
  return condition?.status === 'True' ? (condition.reason ?? '') : undefined;
}
