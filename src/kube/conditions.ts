/** Conditions as in metav1.Condition: one entry per type, with the moment of its last change of status. Pure. */

export type ConditionStatus = 'True' | 'False' | 'Unknown';

export interface Condition {
  type: string;
  status: ConditionStatus;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
  observedGeneration?: number;
}

/** A condition as its author states it; the time of transition is worked out. */
export type NextCondition = Omit<Condition, 'lastTransitionTime'>;

export function findCondition<C extends { type: string }>(
  conditions: readonly C[] | undefined,
  type: string,
): C | undefined {
  return conditions?.find((condition) => condition.type === type);
}

export function isTrue(conditions: readonly { type: string; status: string }[] | undefined, type: string): boolean {
  return findCondition(conditions, type)?.status === 'True';
}

/**
 * The list with `next` in the place of the condition of its type, or at the end. `lastTransitionTime` moves to `now`
 * (RFC 3339) only when the status changes. A repeated call returns the very list it was given.
 */
export function setCondition<C extends Condition>(
  conditions: readonly C[] | undefined,
  next: NextCondition,
  now: string,
): readonly C[] {
  const list = conditions ?? [];
  const at = list.findIndex((condition) => condition.type === next.type);
  if (at < 0) return [...list, { ...next, lastTransitionTime: now } as C];

  const old = list[at] as C;
  if (saysTheSame(old, next)) return list;
  const lastTransitionTime = old.status === next.status ? (old.lastTransitionTime ?? now) : now;
  return list.with(at, { ...old, ...cleared(next), lastTransitionTime });
}

/** reason, message and observedGeneration are replaced as a whole: what `next` does not say is gone. */
function cleared({ type, status, reason, message, observedGeneration }: NextCondition): NextCondition {
  return { type, status, reason, message, observedGeneration };
}

function saysTheSame(old: Condition, next: NextCondition): boolean {
  return (
    old.lastTransitionTime !== undefined &&
    old.status === next.status &&
    old.reason === next.reason &&
    old.message === next.message &&
    old.observedGeneration === next.observedGeneration
  );
}
