/** Labels of nodes, and the node selectors of affinity and volumes: a node matches if one of the terms matches. Pure. */
import type { EngineNode } from '#engine/controllers/kinds.ts';
import type { nodeSelector } from '#engine/registry/kinds/pod-spec/node-affinity.ts';
import { type LabelOperator, type LabelRequirement, matchesLabels } from '#kube/selectors/label-selector.ts';
import type { Infer } from '#kube/schema-dsl.ts';

export type NodeSelector = Infer<typeof nodeSelector>;
type NodeSelectorTerm = NonNullable<NodeSelector['nodeSelectorTerms']>[number];
type Expression = NonNullable<NodeSelectorTerm['matchExpressions']>[number];

export type OptionalLabels = Readonly<Record<string, string>> | undefined;

export type NodeMatch = (node: EngineNode) => boolean;

const NAME_FIELD = 'metadata.name';

const OPERATORS: ReadonlyMap<string, LabelOperator> = new Map([
  ['In', 'in'],
  ['NotIn', 'notin'],
  ['Exists', 'exists'],
  ['DoesNotExist', '!exists'],
  ['Gt', '>'],
  ['Lt', '<'],
]);

/** A selector without terms matches nothing. */
export function compileNodeSelector({ nodeSelectorTerms }: NodeSelector): NodeMatch {
  const terms = nodeSelectorTerms.map(compileTerm);
  return (node) => terms.some((matches) => matches(node));
}

/** A term without requirements matches nothing. */
export function compileTerm({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm): NodeMatch {
  if (matchExpressions.length + matchFields.length === 0) return () => false;
  const byLabel = requirementsOf(matchExpressions);
  const byField = requirementsOf(matchFields);
  if (byLabel === undefined || byField === undefined) return () => false;
  return ({ metadata }) =>
    matchesLabels(byLabel, metadata.labels) &&
    (byField.length === 0 || matchesLabels(byField, { [NAME_FIELD]: metadata.name ?? '' }));
}

/** Returns undefined if an operator is unknown. The term then matches nothing. */
function requirementsOf(expressions: readonly Expression[]): LabelRequirement[] | undefined {
  const requirements: LabelRequirement[] = [];
  for (const { key, operator, values = [] } of expressions) {
    const known = OPERATORS.get(operator);
    if (known === undefined) return undefined;
    requirements.push({ key, operator: known, values });
  }
  return requirements;
}

/** Returns the names of the nodes that can match, if every term selects by metadata.name; otherwise undefined. */
export function namedNodes({ nodeSelectorTerms }: NodeSelector): ReadonlySet<string> | undefined {
  if (nodeSelectorTerms.length === 0) return undefined;
  const names = new Set<string>();
  for (const { matchFields = [] } of nodeSelectorTerms) {
    const lists = matchFields.filter(({ key, operator }) => key === NAME_FIELD && operator === 'In');
    const [first, ...others] = lists.map(({ values = [] }) => values);
    if (first === undefined) return undefined;
    for (const name of first) if (others.every((values) => values.includes(name))) names.add(name);
  }
  return names;
}

export function matchesNodeSelector(selector: OptionalLabels, labels: OptionalLabels): boolean {
  if (selector === undefined) return true;
  const requirements = Object.entries(selector).map(([key, value]) => ({
    key,
    operator: '=' as const,
    values: [value],
  }));
  return matchesLabels(requirements, labels);
}

/** Returns a label, or undefined. Keys come from users, so properties of Object.prototype must not match. */
export function labelOf(labels: OptionalLabels, key: string): string | undefined {
  return labels !== undefined && Object.hasOwn(labels, key) ? labels[key] : undefined;
}
