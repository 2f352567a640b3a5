/**
 * Who depends on whom, by uid, as far as the watches have shown it. The graph only says which objects deserve a look;
 * whether an owner is really gone is asked of the API (look.ts).
 *
 * Duties of an object, at most one at a time:
 *
 *   judge    it has an owner that is unknown here, is somewhere else than the reference says, or waits for it to go
 *   orphan   it is under deletion and its dependents are to lose their references first
 *   release  it waits for dependents in foreground deletion, and none blocks it any more
 *   unblock  it waits for dependents that wait, in a circle, for it
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

export type Duty = 'judge' | 'orphan' | 'release' | 'unblock';

interface Dependents {
  /** The uid of a dependent, and whether it blocks the owner's foreground deletion. */
  readonly blocking: Map<string, boolean>;
  blockers: number;
}

const NO_REFERENCES: readonly OwnerReference[] = [];

export class DependencyGraph {
  readonly #nodes = new Map<string, GraphNode>();
  /** By the uid of the owner, whether that is known or not. */
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

  /** A new object or a new state of one. The result: whose duties this may have changed. */
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

  /** It is gone, or not seen any more. The result: whose duties this may have changed. */
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
    return referencesOf(node).some((reference) => this.#isSuspect(reference, node)) ? 'judge' : undefined;
  }

  /** Owners that wait for this object and that it, over however many steps, waits for itself. */
  cyclicOwnersOf(uid: string): string[] {
    return this.#waitedOwners(uid).filter((owner) => this.#waitsAbove(owner, uid));
  }

  /** Whether the object of that uid is somewhere else than an owner of this dependent could be. */
  isInOtherNamespace({ uid }: OwnerReference, namespace: string | undefined): boolean {
    const owner = this.#nodes.get(uid);
    return owner !== undefined && owner.type.namespaced && owner.object.metadata.namespace !== namespace;
  }

  #isSuspect(reference: OwnerReference, { object }: GraphNode): boolean {
    const owner = this.#nodes.get(reference.uid);
    if (owner === undefined || isInForegroundDeletion(owner.object)) return true;
    if (this.isInOtherNamespace(reference, object.metadata.namespace)) return true;
    // The version may be another one: it is the same object.
    const { group } = parseApiVersion(reference.apiVersion);
    const { type, object: found } = owner;
    return group !== type.group || reference.kind !== type.kind || reference.name !== found.metadata.name;
  }

  #waitedOwners(uid: string): string[] {
    const node = this.#nodes.get(uid);
    if (node === undefined) return [];
    const waits = ({ uid: owner, blockOwnerDeletion }: OwnerReference) => {
      const found = this.#nodes.get(owner);
      return blockOwnerDeletion === true && found !== undefined && isInForegroundDeletion(found.object);
    };
    return referencesOf(node).flatMap((reference) => (waits(reference) ? [reference.uid] : []));
  }

  /** Upwards, because an object has few owners and perhaps thousands of dependents. */
  #waitsAbove(start: string, goal: string): boolean {
    const seen = new Set([start]);
    for (const uid of seen) {
      if (uid === goal) return true;
      for (const owner of this.#waitedOwners(uid)) seen.add(owner);
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

/** How an object's end stands, as far as others care. */
function deletionState({ object }: GraphNode): string {
  if (isOrphaning(object)) return 'orphaning';
  if (isInForegroundDeletion(object)) return 'waiting';
  return isBeingDeleted(object) ? 'deleted' : 'alive';
}
