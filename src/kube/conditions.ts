/** Conditions as in metav1.Condition: one entry per type, with the time of its last change of status. Pure. */

export type ConditionStatus = 'True' | 'False' | 'Unknown';

export interface Condition {
  type: string;
  status: ConditionStatus;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
  observedGeneration?: number;
}

/** A condition without its transition time, which setCondition determines. */
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
 * Returns the list with `next` in place of the condition of its type, or at the end. Sets `lastTransitionTime` to `now`
 * (RFC 3339) only if the status changes. Returns the same list if nothing changes.
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
  if (isUnchanged(old, next)) return list;
  const lastTransitionTime = old.status === next.status ? (old.lastTransitionTime ?? now) : now;
  return list.with(at, { ...old, ...allFields(next), lastTransitionTime });
}

/** Returns all fields of the condition, so that absent ones overwrite those of the previous condition. */
function allFields({ type, status, reason, message, observedGeneration }: NextCondition): NextCondition {
  return { type, status, reason, message, observedGeneration };
}

function isUnchanged(old: Condition, next: NextCondition): boolean {
  return (
    old.lastTransitionTime !== undefined &&
    old.status === next.status &&
    old.reason === next.reason &&
    old.message === next.message &&
    old.observedGeneration === next.observedGeneration
  );
}
