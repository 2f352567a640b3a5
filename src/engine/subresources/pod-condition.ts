/** Conditions that the server sets on pods. */
import type { KubeObject } from '#kube/meta.ts';

interface PodCondition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastProbeTime?: string | null;
  lastTransitionTime?: string;
}

export function setPodCondition(
  pod: KubeObject,
  wanted: Pick<PodCondition, 'type' | 'status' | 'reason' | 'message'>,
  now: string,
): void {
  const status = (pod['status'] ??= {}) as { conditions?: PodCondition[] };
  const conditions = (status.conditions ??= []);
  const at = conditions.findIndex(({ type }) => type === wanted.type);
  const before = conditions[at];
  const since = before?.status === wanted.status ? before.lastTransitionTime : undefined;
  const condition = { ...wanted, lastProbeTime: null, lastTransitionTime: since ?? now };
  if (before === undefined) conditions.push(condition);
  else conditions[at] = condition;
}

export function isPodReady(pod: KubeObject): boolean {
  const { conditions = [] } = (pod['status'] ?? {}) as { conditions?: PodCondition[] };
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
}
