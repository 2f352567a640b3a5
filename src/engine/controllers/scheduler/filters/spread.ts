/** Filters nodes that would violate a topology spread constraint with whenUnsatisfiable: DoNotSchedule. */
import {
  type NodeFilter,
  resolvableRefusal,
  unresolvableRefusal,
} from '#engine/controllers/scheduler/filters/node-filter.ts';
import { labelOf } from '#engine/controllers/placement/node-selector.ts';
import { countByDomain, hasAllKeys, spreadConstraints } from '#engine/controllers/scheduler/spread-constraints.ts';
import { matchesLabels } from '#kube/selectors/label-selector.ts';

const REASON = "node(s) didn't match pod topology spread constraints";
const MISSING_LABEL = unresolvableRefusal(`${REASON} (missing required label)`);
const TOO_SKEWED = resolvableRefusal(REASON);

export const spreadFilter: NodeFilter = (facts, { nodes }) => {
  const constraints = spreadConstraints(facts, 'DoNotSchedule');
  if (constraints.length === 0) return undefined;
  const state = constraints.map((constraint) => {
    const counts = countByDomain(nodes, constraint, facts, (node) => hasAllKeys(node, constraints));
    const fewest = counts.size < constraint.minDomains ? 0 : Math.min(...counts.values());
    const itself = constraint.selector !== undefined && matchesLabels(constraint.selector, facts.labels) ? 1 : 0;
    return { ...constraint, counts, fewest, itself };
  });
  return ({ node }) => {
    for (const { topologyKey, maxSkew, counts, fewest, itself } of state) {
      const domain = labelOf(node.metadata.labels, topologyKey);
      if (domain === undefined) return MISSING_LABEL;
      if ((counts.get(domain) ?? 0) + itself - fewest > maxSkew) return TOO_SKEWED;
    }
    return undefined;
  };
};
