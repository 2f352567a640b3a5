/** Taints and tolerations as defined by core/v1. Pure. */
import type { taint, podTolerationSchema } from '#engine/registry/kinds/pod-spec/scheduling.ts';
import type { Infer } from '#kube/schema-dsl.ts';

export type Taint = Infer<typeof taint>;
export type Toleration = Infer<typeof podTolerationSchema>;

export const NOT_READY = 'node.kubernetes.io/not-ready';
export const UNREACHABLE = 'node.kubernetes.io/unreachable';
export const UNSCHEDULABLE = 'node.kubernetes.io/unschedulable';

export function tolerates(toleration: Toleration, taint: Taint): boolean {
  const { key, effect, operator = 'Equal', value = '' } = toleration;
  if (effect && effect !== taint.effect) return false;
  if (key && key !== taint.key) return false;
  return operator === 'Exists' || value === (taint.value ?? '');
}

/** Returns the first taint with one of these effects that no toleration tolerates. */
export function findUntoleratedTaint(
  taints: readonly Taint[] | undefined,
  tolerations: readonly Toleration[],
  effects: readonly Taint['effect'][],
): Taint | undefined {
  return taints?.find((taint) => effects.includes(taint.effect) && !tolerations.some((one) => tolerates(one, taint)));
}
