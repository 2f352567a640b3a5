/** What a namespace under deletion says about its end: the five conditions of Kubernetes, in its words. Pure. */
import { setCondition, type Condition, type NextCondition } from '#kube/conditions.ts';

/** What deleting everything leaves behind for a while. */
export interface Remaining {
  /** How many, by `configmaps.` or `gadgets.golden.local`. */
  readonly resources: ReadonlyMap<string, number>;
  readonly finalizers: ReadonlyMap<string, number>;
  /** Why objects could not be deleted, one text for each kind. */
  readonly refused: readonly string[];
}

export const NOTHING_REMAINS: Remaining = { resources: new Map(), finalizers: new Map(), refused: [] };

// The first two tell of failures that cannot be: all kinds are known here.
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
  { resources, finalizers, refused }: Remaining,
  now: string,
): readonly Condition[] {
  const all = [
    DISCOVERED,
    PARSED,
    contentFailure(refused),
    contentRemaining(resources),
    finalizersRemaining(finalizers),
  ];
  return all.reduce<readonly Condition[] | undefined>((list, next) => setCondition(list, next, now), before) ?? [];
}

function contentFailure(refused: Remaining['refused']): NextCondition {
  if (refused.length === 0) return DELETED;
  const message = `Failed to delete all resource types, ${refused.length} remaining: ${refused.join(', ')}`;
  return { type: DELETED.type, status: 'True', reason: 'ContentDeletionFailed', message };
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
