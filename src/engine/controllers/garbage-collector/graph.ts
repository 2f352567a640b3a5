/**
 * The dependency graph by uid, as delivered by the watches. It only determines which objects have to be checked. Whether
 * an owner exists is asked of the API (read-live.ts).
 *
 * Duties of an object, at most one at a time:
 *
 *   checkOwners  it has an owner that is unknown, does not match the reference, or waits for the object's deletion
 *   orphan       it is under deletion, and its dependents must lose their references first
 *   release      it is in foreground deletion, and no dependent blocks it
 *   unblock      it is in foreground deletion, and waits for dependents that wait for it in a cycle
 */
import { deepEqual } from '#kube/deep.ts';
import { parseApiVersion, type OwnerReference, type ResourceType, type Stored } from '#kube/meta.ts';
import {
  isBeingDeleted,
  isOrphaning,
  isInForegroundDeletion,
} from '#engine/controllers/garbage-collector/metadata-only.ts';

export interface GraphNode {
  readonly type: ResourceType;
  /** Metadata only. */
  readonly object: Stored;
}

export type Duty = 'checkOwners' | 'orphan' | 'release' | 'unblock';

interface Dependents {
  /** By the uid of the dependent: true if it blocks the foreground deletion of the owner. */
  readonly blocking: Map<string, boolean>;
  blockers: number;
}

const NO_REFERENCES: readonly OwnerReference[] = [];

export class DependencyGraph {
  readonly #nodes = new Map<string, GraphNode>();
  /** By the uid of the owner, which need not be in the graph. */
  readonly #dependents = new Map<string, Dependents>();

  get size(): number {
    return this.#nodes.size;
  }

  get(uid: string): GraphNode | undefined {
    return this.#nodes.get(uid);
  }

  nodes(): Iterable<GraphNode> {
    return this.#nodes.values();
  }

  *dependentsOf(uid: string): Iterable<GraphNode> {
    for (const dependent of this.#dependents.get(uid)?.blocking.keys() ?? []) yield this.#nodes.get(dependent)!;
  }

  hasDependents(uid: string): boolean {
    return this.#dependents.has(uid);
  }

  /** Adds or updates an object. Returns the uids whose duties may have changed. */
  set(node: GraphNode): string[] {
    const { uid } = node.object.metadata;
    const old = this.#nodes.get(uid);
    this.#nodes.set(uid, node);
    const before = old === undefined ? NO_REFERENCES : referencesOf(old);
    const after = referencesOf(node);
    const sameOwners = old !== undefined && deepEqual(before, after);
    const sameDeletionState = old !== undefined && deletionState(old) === deletionState(node);
    if (sameOwners && sameDeletionState) return [];
    if (!sameOwners) {
      for (const { uid: owner } of before) this.#unlink(owner, uid);
      for (const reference of after) this.#link(reference, uid);
    }
    const affected = new Set([uid]);
    if (!sameOwners) for (const { uid: owner } of [...before, ...after]) affected.add(owner);
    if (!sameDeletionState)
      for (const dependent of this.#dependents.get(uid)?.blocking.keys() ?? []) affected.add(dependent);
    return [...affected];
  }

  /** Removes an object. Returns the uids whose duties may have changed. */
  remove(uid: string): string[] {
    const node = this.#nodes.get(uid);
    if (node === undefined) return [];
    this.#nodes.delete(uid);
    const affected = new Set(this.#dependents.get(uid)?.blocking.keys());
    for (const { uid: owner } of referencesOf(node)) {
      this.#unlink(owner, uid);
      affected.add(owner);
    }
    return [...affected];
  }

  dutyOf(uid: string): Duty | undefined {
    const node = this.#nodes.get(uid);
    if (node === undefined) return undefined;
    const { object } = node;
    if (isOrphaning(object)) return 'orphan';
    if (isInForegroundDeletion(object)) {
      if (this.#blockersOf(uid) === 0) return 'release';
      return this.cyclicOwnersOf(uid).length > 0 ? 'unblock' : undefined;
    }
    if (isBeingDeleted(object)) return undefined;
    return referencesOf(node).some((reference) => this.#needsOwnerCheck(reference, node)) ? 'checkOwners' : undefined;
  }

  /** Returns the owners that wait for this object and that the object waits for, directly or indirectly. */
  cyclicOwnersOf(uid: string): string[] {
    return this.#blockedOwners(uid).filter((owner) => this.#isReachable(owner, uid));
  }

  /** Reports whether the object with the uid of this reference is in another namespace than the dependent. */
  isInOtherNamespace({ uid }: OwnerReference, namespace: string | undefined): boolean {
    const owner = this.#nodes.get(uid);
    return owner !== undefined && owner.type.namespaced && owner.object.metadata.namespace !== namespace;
  }

  #needsOwnerCheck(reference: OwnerReference, { object }: GraphNode): boolean {
    const owner = this.#nodes.get(reference.uid);
    if (owner === undefined || isInForegroundDeletion(owner.object)) return true;
    if (this.isInOtherNamespace(reference, object.metadata.namespace)) return true;
    // The version is not compared: versions of a kind are the same objects.
    const { group } = parseApiVersion(reference.apiVersion);
    const { type, object: found } = owner;
    return group !== type.group || reference.kind !== type.kind || reference.name !== found.metadata.name;
  }

  /** Returns the owners in foreground deletion that this object blocks. */
  #blockedOwners(uid: string): string[] {
    const node = this.#nodes.get(uid);
    if (node === undefined) return [];
    const waits = ({ uid: owner, blockOwnerDeletion }: OwnerReference) => {
      const found = this.#nodes.get(owner);
      return blockOwnerDeletion === true && found !== undefined && isInForegroundDeletion(found.object);
    };
    return referencesOf(node).flatMap((reference) => (waits(reference) ? [reference.uid] : []));
  }

  /** Searches from object to owner, because an object has few owners but may have thousands of dependents. */
  #isReachable(start: string, goal: string): boolean {
    const seen = new Set([start]);
    for (const uid of seen) {
      if (uid === goal) return true;
      for (const owner of this.#blockedOwners(uid)) seen.add(owner);
    }
    return false;
  }

  #blockersOf(uid: string): number {
    return this.#dependents.get(uid)?.blockers ?? 0;
  }

  #link({ uid: owner, blockOwnerDeletion = false }: OwnerReference, dependent: string): void {
    let dependents = this.#dependents.get(owner);
    if (dependents === undefined) this.#dependents.set(owner, (dependents = { blocking: new Map(), blockers: 0 }));
    // Two references to one owner count once.
    const before = dependents.blocking.get(dependent) ?? false;
    dependents.blocking.set(dependent, before || blockOwnerDeletion);
    if (!before && blockOwnerDeletion) dependents.blockers++;
  }

  #unlink(owner: string, dependent: string): void {
    const dependents = this.#dependents.get(owner);
    if (dependents === undefined) return;
    if (dependents.blocking.get(dependent)) dependents.blockers--;
    dependents.blocking.delete(dependent);
    if (dependents.blocking.size === 0) this.#dependents.delete(owner);
  }
}

export function referencesOf({ object }: Pick<GraphNode, 'object'>): readonly OwnerReference[] {
  return object.metadata.ownerReferences ?? NO_REFERENCES;
}

/** Returns the state of an object's deletion that affects its owners and dependents. */
function deletionState({ object }: GraphNode): string {
  if (isOrphaning(object)) return 'orphaning';
  if (isInForegroundDeletion(object)) return 'waiting';
  return isBeingDeleted(object) ? 'deleted' : 'alive';
}
