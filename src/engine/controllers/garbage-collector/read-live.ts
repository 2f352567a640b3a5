/** Reads the current state of an object and its owners from the API. Deletes are decided on this, because the graph may lag. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ObjectName, Reader } from '#client/client.ts';
import type { OwnerObservation, OwnerState } from '#engine/controllers/garbage-collector/decide-dependent.ts';
import { referencesOf, type DependencyGraph, type GraphNode } from '#engine/controllers/garbage-collector/graph.ts';
import { isInForegroundDeletion, metadataOnly } from '#engine/controllers/garbage-collector/metadata-only.ts';
import type { CollectedObject } from '#engine/controllers/garbage-collector/owner-patches.ts';
import type { ServedKinds } from '#engine/controllers/garbage-collector/served-kinds.ts';
import { isApiError } from '#kube/api-error.ts';
import type { OwnerReference, ResourceType, Stored } from '#kube/meta.ts';

export interface LiveReadParts {
  readonly reader: Pick<Reader, 'get' | 'list'>;
  readonly kinds: ServedKinds;
  readonly graph: DependencyGraph;
  /** Reports whether a watch has delivered the deletion of the object with this uid. */
  wasDeleted(uid: string): boolean;
  readonly signal: AbortSignal;
}

/** Reads the object of a node; undefined if it was deleted or replaced by another one. */
export async function readLiveObject(
  parts: LiveReadParts,
  { type, object }: GraphNode,
): Promise<CollectedObject | undefined> {
  const found = await getObject(parts, type, object.metadata);
  return found?.metadata.uid === object.metadata.uid ? { type, object: found } : undefined;
}

/** The number of owners that are read in one turn of the event loop. */
const OWNERS_PER_TURN = 100;

export async function observeOwners(parts: LiveReadParts, dependent: CollectedObject): Promise<OwnerObservation[]> {
  const { graph } = parts;
  const { namespace } = dependent.object.metadata;
  const observations: OwnerObservation[] = [];
  for (const [index, reference] of referencesOf(dependent).entries()) {
    // Reads in this process do not leave the turn of the event loop.
    if (index % OWNERS_PER_TURN === OWNERS_PER_TURN - 1) await nextTurn();
    const state = await ownerStateOf(parts, reference, namespace);
    const isWatched = graph.get(reference.uid) !== undefined;
    observations.push({
      reference,
      state,
      isWatched,
      isInOtherNamespace: graph.isInOtherNamespace(reference, namespace),
    });
  }
  return observations;
}

async function ownerStateOf(
  parts: LiveReadParts,
  reference: OwnerReference,
  namespace: string | undefined,
): Promise<OwnerState> {
  const type = parts.kinds.find(reference);
  // The objects of a kind are deleted with the kind. Afterwards only the recorded deletions show whether the owner existed.
  if (type === undefined) return parts.wasDeleted(reference.uid) ? 'absent' : 'unserved';
  if (type.namespaced && namespace === undefined) return 'invalid';
  const owner = await getObject(parts, type, { name: reference.name, namespace });
  if (owner?.metadata.uid !== reference.uid) return 'absent';
  return isInForegroundDeletion(owner) ? 'waiting' : 'solid';
}

async function getObject(
  { reader, signal }: LiveReadParts,
  type: ResourceType,
  { name, namespace }: ObjectName,
): Promise<Stored | undefined> {
  try {
    const where = type.namespaced ? { name, namespace } : { name };
    return metadataOnly(await reader.get(type, where, { signal }));
  } catch (error) {
    // Without the name in the details, the kind is missing, not the object. That does not tell whether the object exists.
    if (isApiError(error, 'NotFound') && error.details?.name === name) return undefined;
    throw error;
  }
}

const PAGE = 500;

/**
 * Returns objects that refer to an owner whose dependents are to be orphaned. Those in the graph come first. If it has
 * none, the API is asked, because a dependent that no watch has delivered yet would otherwise be deleted.
 */
export async function findDependents(
  parts: LiveReadParts,
  owner: CollectedObject,
  atMost: number,
): Promise<readonly CollectedObject[]> {
  const { uid, namespace } = owner.object.metadata;
  const known = [...parts.graph.dependentsOf(uid)].slice(0, atMost);
  if (known.length > 0) return known;
  const found: CollectedObject[] = [];
  for (const type of parts.kinds.collectable()) {
    // The dependents of a namespaced owner are in the same namespace.
    if (owner.type.namespaced && !type.namespaced) continue;
    await collectDependents(parts, type, { uid, namespace, atMost }, found);
  }
  return found;
}

async function collectDependents(
  { reader, signal }: LiveReadParts,
  type: ResourceType,
  { uid, namespace, atMost }: { uid: string; namespace: string | undefined; atMost: number },
  found: CollectedObject[],
): Promise<void> {
  let next: string | undefined;
  do {
    const page = await reader.list(type, { namespace, limit: PAGE, continue: next, signal });
    for (const item of page.items) {
      const object = metadataOnly(item);
      if (found.length < atMost && referencesOf({ object }).some((reference) => reference.uid === uid)) {
        found.push({ type, object });
      }
    }
    next = page.metadata.continue;
  } while (next !== undefined && next !== '' && found.length < atMost);
}
