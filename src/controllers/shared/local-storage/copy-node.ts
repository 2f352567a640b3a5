/** Selects the node that copies or removes data on shared storage. Pure. */
import { SCHEDULABLE_LABEL } from '#api/names.ts';
import type { Informer } from '#client/informer.ts';
import { isTrue } from '#kube/conditions.ts';
import type { Node } from '#kube/core-kinds.ts';

/** Index of the nodes that can copy, all with the key COPIER. */
const COPIERS = 'copier';
const COPIER = 'yes';
/** Time until the next check if no node can copy. */
export const NO_COPIER_RETRY_MS = 10_000;

export function indexCopiers(nodes: Informer<Node>): void {
  nodes.addIndex(COPIERS, (node) => (canCopy(node) ? [COPIER] : []));
}

/** Returns the first node by name that can copy, so that all controllers choose the same. */
export function firstCopier(nodes: Pick<Informer<Node>, 'byIndex'>): string | undefined {
  let first: string | undefined;
  for (const { metadata } of nodes.byIndex(COPIERS, COPIER)) {
    if (first === undefined || metadata.name < first) first = metadata.name;
  }
  return first;
}

/** Reports whether the node can copy: it runs our agent and is ready. */
export function canCopy({ metadata, status }: Node): boolean {
  const runs = metadata.labels?.[SCHEDULABLE_LABEL] === 'true' && metadata.deletionTimestamp === undefined;
  return runs && isTrue(status?.conditions, 'Ready');
}
