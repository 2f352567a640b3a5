/** What a namespace under deletion says about its end: the five conditions of Kubernetes, in its words. Pure. */
import { setCondition, type Condition, type NextCondition } from '#kube/conditions.ts';

/** What deleting everything leaves behind for a while. */
export interface Remaining {
  /** How many, by `configmaps.` or `gadgets.golden.local`. */
  readonly resources: ReadonlyMap<string, number>;
  readonly finalizers: ReadonlyMap<string, number>;
}

// The first three tell of failures that we report otherwise: kinds are known here, and a delete that fails is retried.
const DISCOVERED: NextCondition = {
  type: 'NamespaceDeletionDiscoveryFailure',
  status: 'False',
  reason: 'ResourcesDiscovered',
  message: 'All resources successfully discovered',
};
const PARSED: NextCondition = {
  type: 'NamespaceDeletionGroupVersionParsingFailure',
  status: 'False',
  reason: 'ParsedGroupVersions',
  message: 'All legacy kube types successfully parsed',
};
const DELETED: NextCondition = {
  type: 'NamespaceDeletionContentFailure',
  status: 'False',
  reason: 'ContentDeleted',
  message: 'All content successfully deleted, may be waiting on finalization',
};

/** The list with these five in it, others untouched. */
export function namespaceConditions(
  before: readonly Condition[] | undefined,
  { resources, finalizers }: Remaining,
  now: string,
): readonly Condition[] {
  const all = [DISCOVERED, PARSED, DELETED, contentRemaining(resources), finalizersRemaining(finalizers)];
  return all.reduce<readonly Condition[] | undefined>((list, next) => setCondition(list, next, now), before) ?? [];
}

function contentRemaining(resources: Remaining['resources']): NextCondition {
  const type = 'NamespaceContentRemaining';
  if (resources.size === 0) {
    return { type, status: 'False', reason: 'ContentRemoved', message: 'All content successfully removed' };
  }
  const message = `Some resources are remaining: ${told(resources, 'has')}`;
  return { type, status: 'True', reason: 'SomeResourcesRemain', message };
}

function finalizersRemaining(finalizers: Remaining['finalizers']): NextCondition {
  const type = 'NamespaceFinalizersRemaining';
  if (finalizers.size === 0) {
    const message = 'All content-preserving finalizers finished';
    return { type, status: 'False', reason: 'ContentHasNoFinalizers', message };
  }
  const message = `Some content in the namespace has finalizers remaining: ${told(finalizers, 'in')}`;
  return { type, status: 'True', reason: 'SomeFinalizersRemain', message };
}

const told = (counts: ReadonlyMap<string, number>, word: string) =>
  [...counts]
    .map(([name, count]) => `${name} ${word} ${count} resource instances`)
    .sort()
    .join(', ');
