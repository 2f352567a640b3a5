/** Finds out whether any node offers a machine type, from the labels that the scheduler uses. Pure. */
import { MACHINE_TYPE_LABEL_PREFIX } from '#api/names.ts';
import type { Node } from '#kube/core-kinds.ts';

type NodeView = Pick<Node, 'metadata'>;

/** Maximum number of types in a message. */
const MAX_NAMED = 6;

/** Compares names in natural order: 6.2 before 10.0. */
const natural = new Intl.Collator('en', { numeric: true });

/** Returns the types and aliases that the node offers. */
export function offeredTypeNames({ metadata }: NodeView): string[] {
  return Object.entries(metadata.labels ?? {})
    .filter(([key, value]) => key.startsWith(MACHINE_TYPE_LABEL_PREFIX) && value === 'true')
    .map(([key]) => key.slice(MACHINE_TYPE_LABEL_PREFIX.length));
}

/**
 * Returns a sentence that names the type and what nodes offer instead, or undefined if a node offers it. Without any
 * node that offers types, nothing is known.
 */
export function describeUnofferedType(type: string, nodes: readonly NodeView[]): string | undefined {
  const offered = new Set(nodes.flatMap(offeredTypeNames));
  if (offered.size === 0 || offered.has(type)) return undefined;
  const sorted = [...offered].toSorted((a, b) => rankOf(a, type) - rankOf(b, type) || natural.compare(b, a));
  const named = sorted.slice(0, MAX_NAMED).join(', ');
  const more = sorted.length > MAX_NAMED ? ` and ${sorted.length - MAX_NAMED} others` : '';
  return `no node offers the machine type "${type}"; the nodes offer ${named}${more} ("virtctl update machine-types supported" lists them)`;
}

/** Ranks types of the same chipset first, and aliases before versions: an alias is what most users want. */
function rankOf(name: string, type: string): number {
  const isSameChipset = chipsetIn(name) === chipsetIn(type);
  const isAlias = !/\d\.\d/.test(name);
  return (isSameChipset ? 0 : 2) + (isAlias ? 0 : 1);
}

function chipsetIn(type: string): 'q35' | 'other' {
  return type.includes('q35') ? 'q35' : 'other';
}
