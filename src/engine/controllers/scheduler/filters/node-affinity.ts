/** Filters nodes by the pod's nodeSelector and required node affinity. */
import { type NodeFilter, unresolvableRefusal } from '#engine/controllers/scheduler/filters/node-filter.ts';
import type { EngineNode, EnginePod } from '#engine/controllers/kinds.ts';
import {
  compileNodeSelector,
  matchesNodeSelector,
  namedNodes,
  type NodeMatch,
} from '#engine/controllers/placement/node-selector.ts';
import type { NodeSelector } from '#engine/controllers/placement/node-selector.ts';

function requiredSelector({ spec }: EnginePod): NodeSelector | undefined {
  return spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
}

/** Runs first: nodes that the pod does not name need no other check. */
export const namedNodeFilter: NodeFilter = ({ pod }) => {
  const selector = requiredSelector(pod);
  const names = selector && namedNodes(selector);
  if (names === undefined) return undefined;
  if (names.size === 0) return { noNodeReason: 'pod affinity terms conflict' };
  const refusal = unresolvableRefusal("node(s) didn't satisfy plugin(s) [NodeAffinity]");
  return ({ name }) => (names.has(name) ? undefined : refusal);
};

export const nodeAffinityFilter: NodeFilter = ({ pod }) => {
  const matches = requiredNodeMatch(pod);
  if (matches === undefined) return undefined;
  const refusal = unresolvableRefusal("node(s) didn't match Pod's node affinity/selector");
  return ({ node }) => (matches(node) ? undefined : refusal);
};

/** Returns undefined if the pod accepts any node. */
export function requiredNodeMatch(pod: EnginePod): NodeMatch | undefined {
  const { nodeSelector } = pod.spec;
  const required = requiredSelector(pod);
  if (nodeSelector === undefined && required === undefined) return undefined;
  const matches = required && compileNodeSelector(required);
  return (node: EngineNode) =>
    matchesNodeSelector(nodeSelector, node.metadata.labels) && (matches === undefined || matches(node));
}
