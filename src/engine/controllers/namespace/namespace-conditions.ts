/** The five conditions of a namespace under deletion, with Kubernetes' wording. Pure. */
import { setCondition, type Condition, type NextCondition } from '#kube/conditions.ts';

/** The content that remains after everything was deleted once. */
export interface RemainingContent {
  /** The number of objects by resource: `configmaps.` or `gadgets.golden.local`. */
  readonly resources: ReadonlyMap<string, number>;
  readonly finalizers: ReadonlyMap<string, number>;
  /** Why objects could not be deleted: one message for each kind. */
  readonly refused: readonly string[];
}

export const NOTHING_REMAINS: RemainingContent = { resources: new Map(), finalizers: new Map(), refused: [] };

// The first two conditions report failures that cannot happen here, because all kinds are known.
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

/** Returns the conditions with these five set. Other conditions are kept. */
export function namespaceConditions(
  before: readonly Condition[] | undefined,
  { resources, finalizers, refused }: RemainingContent,
  now: string,
): readonly Condition[] {
  const all = [
    DISCOVERED,
    PARSED,
    deletionFailureCondition(refused),
    contentCondition(resources),
    finalizersCondition(finalizers),
  ];
  return all.reduce<readonly Condition[] | undefined>((list, next) => setCondition(list, next, now), before) ?? [];
}

function deletionFailureCondition(refused: RemainingContent['refused']): NextCondition {
  if (refused.length === 0) return DELETED;
  const message = `Failed to delete all resource types, ${refused.length} remaining: ${refused.join(', ')}`;
  return { type: DELETED.type, status: 'True', reason: 'ContentDeletionFailed', message };
}

function contentCondition(resources: RemainingContent['resources']): NextCondition {
  const type = 'NamespaceContentRemaining';
  if (resources.size === 0) {
    return { type, status: 'False', reason: 'ContentRemoved', message: 'All content successfully removed' };
  }
  const message = `Some resources are remaining: ${renderCounts(resources, 'has')}`;
  return { type, status: 'True', reason: 'SomeResourcesRemain', message };
}

function finalizersCondition(finalizers: RemainingContent['finalizers']): NextCondition {
  const type = 'NamespaceFinalizersRemaining';
  if (finalizers.size === 0) {
    const message = 'All content-preserving finalizers finished';
    return { type, status: 'False', reason: 'ContentHasNoFinalizers', message };
  }
  const message = `Some content in the namespace has finalizers remaining: ${renderCounts(finalizers, 'in')}`;
  return { type, status: 'True', reason: 'SomeFinalizersRemain', message };
}

const renderCounts = (counts: ReadonlyMap<string, number>, word: string) =>
  [...counts]
    .map(([name, count]) => `${name} ${word} ${count} resource instances`)
    .sort()
    .join(', ');
