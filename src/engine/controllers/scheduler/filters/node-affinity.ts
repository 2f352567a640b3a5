/** Which nodes the pod asks for: by name, by nodeSelector, by required node affinity. */
import { type Filter, unresolvable } from '#engine/controllers/scheduler/filters/filter.ts';
import type { Node, Pod } from '#engine/controllers/kinds.ts';
import {
  compileNodeSelector,
  matchesNodeSelector,
  namedNodes,
  type NodeMatch,
  type NodeSelector,
} from '#engine/controllers/scheduler/node-selector.ts';

function requiredSelector({ spec }: Pod): NodeSelector | undefined {
  return spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
}

/** Stands first: nodes that are not named are not even looked at. */
export const namedNodeFilter: Filter = ({ pod }) => {
  const selector = requiredSelector(pod);
  const names = selector && namedNodes(selector);
  if (names === undefined) return undefined;
  if (names.size === 0) return { nowhere: 'pod affinity terms conflict' };
  const refusal = unresolvable("node(s) didn't satisfy plugin(s) [NodeAffinity]");
  return ({ name }) => (names.has(name) ? undefined : refusal);
};

export const nodeAffinityFilter: Filter = ({ pod }) => {
  const matches = requiredNodeMatch(pod);
  if (matches === undefined) return undefined;
  const refusal = unresolvable("node(s) didn't match Pod's node affinity/selector");
  return ({ node }) => (matches(node) ? undefined : refusal);
};

/** undefined: any node will do. */
export function requiredNodeMatch(pod: Pod): NodeMatch | undefined {
  const { nodeSelector } = pod.spec;
  const required = requiredSelector(pod);
  if (nodeSelector === undefined && required === undefined) return undefined;
  const matches = required && compileNodeSelector(required);
  return (node: Node) =>
    matchesNodeSelector(nodeSelector, node.metadata.labels) && (matches === undefined || matches(node));
}
