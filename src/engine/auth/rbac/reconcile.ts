/**
 * Brings default roles and bindings back to what they must at least have. Nothing is taken away: an administrator may
 * widen them, and one who sets the autoupdate annotation to "false" is left alone. Pure.
 */
import { AUTOUPDATE } from '#engine/auth/rbac/defaults/build-policy.ts';
import { uncovered } from '#engine/auth/rbac/covers.ts';
import type { Binding, ClusterRole, PolicyRule } from '#engine/auth/rbac/policy.ts';
import { deepEqual } from '#kube/deep.ts';
import type { KubeObject, ObjectMeta } from '#kube/meta.ts';

/** `recreate`: a binding cannot change whose role it is of. */
export type Repair<T extends KubeObject> = 'none' | 'recreate' | { readonly update: T };

/** Roles are cluster roles without aggregation. */
export function repairRole<T extends ClusterRole>(present: T, wanted: T): Repair<T> {
  if (isProtected(present)) return 'none';
  const { rules } = present;
  // What a role gathers is the aggregation controller's.
  const own = wanted.aggregationRule === undefined ? (wanted.rules ?? []) : [];
  const missing = own.flatMap((rule) => missingOf(rules ?? [], rule));
  const metadata = withMarks(present.metadata, wanted.metadata);
  const aggregationRule = repairAggregation(present, wanted);
  const right =
    missing.length === 0 &&
    deepEqual(metadata, present.metadata) &&
    deepEqual(aggregationRule, present.aggregationRule);
  return right ? 'none' : { update: { ...present, metadata, aggregationRule, rules: [...(rules ?? []), ...missing] } };
}

/** Rule by rule, because a large role may be too much to compare at once; if even that is, the rule itself must be there. */
function missingOf(present: readonly PolicyRule[], rule: PolicyRule): readonly PolicyRule[] {
  return uncovered(present, [rule]) ?? lacking(present, [rule]);
}

/** A role that must not be aggregated stops being so; one that must be gets the selectors that it lacks. */
function repairAggregation(present: ClusterRole, wanted: ClusterRole): ClusterRole['aggregationRule'] {
  if (wanted.aggregationRule === undefined) return undefined;
  const { clusterRoleSelectors = [] } = present.aggregationRule ?? {};
  const missing = lacking(clusterRoleSelectors, wanted.aggregationRule.clusterRoleSelectors ?? []);
  return { clusterRoleSelectors: [...clusterRoleSelectors, ...missing] };
}

export function repairBinding(present: Binding, wanted: Binding): Repair<Binding> {
  if (isProtected(present)) return 'none';
  if (!deepEqual(present.roleRef, wanted.roleRef)) return 'recreate';
  const subjects = present.subjects ?? [];
  const missing = lacking(subjects, wanted.subjects ?? []);
  const metadata = withMarks(present.metadata, wanted.metadata);
  if (missing.length === 0 && deepEqual(metadata, present.metadata)) return 'none';
  return { update: { ...present, metadata, subjects: [...subjects, ...missing] } };
}

function lacking<T>(present: readonly T[], wanted: readonly T[]): T[] {
  return wanted.filter((value) => !present.some((one) => deepEqual(one, value)));
}

function isProtected({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[AUTOUPDATE] === 'false';
}

/** What somebody set to another value stays so. */
function withMarks(present: ObjectMeta, wanted: ObjectMeta): ObjectMeta {
  return {
    ...present,
    labels: { ...wanted.labels, ...present.labels },
    annotations: { ...wanted.annotations, ...present.annotations },
  };
}
