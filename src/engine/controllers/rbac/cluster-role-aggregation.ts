/**
 * ClusterRoles with an aggregationRule: sets their rules to those of all roles that the selectors match. A new kind can be
 * added to admin, edit and view this way, with a labelled role.
 */
import { RBAC_CLUSTER_ROLES, type RbacClusterRole, type RbacRule } from '#engine/auth/rbac/policy.ts';
import type { EngineController } from '#engine/controllers/engine-controller.ts';
import { deepEqual } from '#kube/deep.ts';
import { labelRequirementsOf, matchesLabels } from '#kube/selectors/label-selector.ts';
import type { Stored } from '#kube/meta.ts';
import { defineController, source, startController } from '#runtime/controller.ts';
import { EMPTY_PLAN, type Plan } from '#runtime/plan.ts';

interface AggregationWorld {
  readonly role: Stored<RbacClusterRole>;
  readonly all: readonly Stored<RbacClusterRole>[];
}

/** Decides the rules of one aggregated role. Pure. */
export function decideAggregation({ role, all }: AggregationWorld): Plan {
  const { metadata, aggregationRule } = role;
  if (aggregationRule === undefined) return EMPTY_PLAN;
  const rules = collectRules(role, all);
  if (deepEqual(rules, role.rules ?? [])) return EMPTY_PLAN;
  return {
    changes: [
      {
        do: 'patch',
        type: RBAC_CLUSTER_ROLES,
        name: { name: metadata.name },
        uid: metadata.uid,
        patch: { type: 'merge', body: { rules } },
        why: 'the rules of the selected roles have changed',
      },
    ],
  };
}

/** Returns the rules of the selected roles without duplicates: by selector, then by role name. */
function collectRules(
  { metadata, aggregationRule }: Stored<RbacClusterRole>,
  all: AggregationWorld['all'],
): RbacRule[] {
  const sorted = all.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  const rules = new Map<string, RbacRule>();
  for (const selector of aggregationRule?.clusterRoleSelectors ?? []) {
    const requirements = labelRequirementsOf(selector);
    for (const other of sorted) {
      if (other.metadata.name === metadata.name || !matchesLabels(requirements, other.metadata.labels)) continue;
      for (const rule of other.rules ?? []) {
        const key = ruleKey(rule);
        if (!rules.has(key)) rules.set(key, rule);
      }
    }
  }
  return [...rules.values()];
}

function ruleKey({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }: RbacRule): string {
  return JSON.stringify([verbs, apiGroups, resources, resourceNames, nonResourceURLs]);
}

export const clusterRoleAggregation: EngineController = {
  account: 'clusterrole-aggregation-controller',
  start(parts) {
    const informer = parts.informer(RBAC_CLUSTER_ROLES);
    // Any role may be selected by any aggregated role, and there are few aggregated roles.
    const aggregatedRoles = () =>
      informer
        .list()
        .filter(({ aggregationRule }) => aggregationRule !== undefined)
        .map(({ metadata }) => metadata.name);
    const definition = defineController<AggregationWorld>({
      name: 'cluster-role-aggregation',
      type: RBAC_CLUSTER_ROLES,
      sources: [source(informer, aggregatedRoles)],
      observe(key) {
        const role = informer.get(key);
        return role && { role, all: informer.list() };
      },
      decide: decideAggregation,
      subject: ({ role }) => role,
    });
    return startController(definition, parts);
  },
};
