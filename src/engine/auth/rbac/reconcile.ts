/**
 * Restores the minimal contents of default roles and bindings. Nothing is removed: an administrator may extend them, or
 * set the autoupdate annotation to "false" to keep them unchanged. Pure.
 */
import { AUTOUPDATE } from '#engine/auth/rbac/defaults/build-policy.ts';
import { findUncovered } from '#engine/auth/rbac/covers.ts';
import type { RbacBinding, RbacClusterRole, RbacRule } from '#engine/auth/rbac/policy.ts';
import { deepEqual } from '#kube/deep.ts';
import type { KubeObject, ObjectMeta } from '#kube/meta.ts';

/** `recreate`: the role of a binding is immutable. */
export type Repair<T extends KubeObject> = 'none' | 'recreate' | { readonly update: T };

/** Repairs Roles and ClusterRoles. */
export function repairRole<T extends RbacClusterRole>(present: T, wanted: T): Repair<T> {
  if (isProtected(present)) return 'none';
  const { rules } = present;
  // The aggregation controller maintains the rules of an aggregated role.
  const own = wanted.aggregationRule === undefined ? (wanted.rules ?? []) : [];
  const missing = own.flatMap((rule) => findMissing(rules ?? [], rule));
  const metadata = withDefaultMeta(present.metadata, wanted.metadata);
  const aggregationRule = repairAggregation(present, wanted);
  const right =
    missing.length === 0 &&
    deepEqual(metadata, present.metadata) &&
    deepEqual(aggregationRule, present.aggregationRule);
  return right ? 'none' : { update: { ...present, metadata, aggregationRule, rules: [...(rules ?? []), ...missing] } };
}

/**
 * Compares rule by rule, because a large role may be too expensive to compare at once. If even one rule is, the rule
 * itself must be present.
 */
function findMissing(present: readonly RbacRule[], rule: RbacRule): readonly RbacRule[] {
  return findUncovered(present, [rule]) ?? findLacking(present, [rule]);
}

/** Removes an aggregation that should not exist, and adds missing selectors. */
function repairAggregation(present: RbacClusterRole, wanted: RbacClusterRole): RbacClusterRole['aggregationRule'] {
  if (wanted.aggregationRule === undefined) return undefined;
  const { clusterRoleSelectors = [] } = present.aggregationRule ?? {};
  const missing = findLacking(clusterRoleSelectors, wanted.aggregationRule.clusterRoleSelectors ?? []);
  return { clusterRoleSelectors: [...clusterRoleSelectors, ...missing] };
}

export function repairBinding(present: RbacBinding, wanted: RbacBinding): Repair<RbacBinding> {
  if (isProtected(present)) return 'none';
  if (!deepEqual(present.roleRef, wanted.roleRef)) return 'recreate';
  const subjects = present.subjects ?? [];
  const missing = findLacking(subjects, wanted.subjects ?? []);
  const metadata = withDefaultMeta(present.metadata, wanted.metadata);
  if (missing.length === 0 && deepEqual(metadata, present.metadata)) return 'none';
  return { update: { ...present, metadata, subjects: [...subjects, ...missing] } };
}

function findLacking<T>(present: readonly T[], wanted: readonly T[]): T[] {
  return wanted.filter((value) => !present.some((one) => deepEqual(one, value)));
}

function isProtected({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[AUTOUPDATE] === 'false';
}

/** Changed values are kept. */
function withDefaultMeta(present: ObjectMeta, wanted: ObjectMeta): ObjectMeta {
  return {
    ...present,
    labels: { ...wanted.labels, ...present.labels },
    annotations: { ...wanted.annotations, ...present.annotations },
  };
}
