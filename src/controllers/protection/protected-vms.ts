/**
 * An index of the protected VMs by the objects with which they would be lost. It is sorted, so that the first few are
 * found quickly. Its sources trigger reconciles only when a VM gains or loses a relation, not for every change of its
 * status.
 */
import { claimNamesOf, statusClaimNames } from '#api/storage/claim-names.ts';
import { isProtected } from '#api/protection/delete-protection.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { Informer } from '#client/informer.ts';
import type { ObjectChange } from '#client/object-cache.ts';
import { keyOf } from '#client/object-key.ts';
import { stateIndexKey } from '#controllers/shared/persistent-state/claims-by-state.ts';
import { SortedKeys } from '#controllers/protection/sorted-keys.ts';
import type { Stored } from '#kube/meta.ts';
import { unreachable } from '#lib/invariant.ts';
import type { Source } from '#runtime/controller.ts';

/**
 * A relation of a VM: `anywhere` to the definitions of our kinds, to its namespace, to the claims that its template and
 * its status name, as an owner, or to the index key of its persistent state. The last two follow metadata of claims,
 * which users can write: they add protection, but do not take it away from a claim that template or status names.
 */
export type Relation = 'anywhere' | 'namespace' | 'claim' | 'owner' | 'state';

const RELATIONS: readonly Relation[] = ['anywhere', 'namespace', 'claim', 'owner', 'state'];

/** The only value of the relation `anywhere`. */
export const ANYWHERE = '';

/** More VMs than a mark names, so that it can say that there are others. */
export const MAX_FIRST = 10;

/** Returns the key of an owner. An owner in another namespace is invalid, so the namespace is a part of the key. */
export function vmOwnerKey(namespace: string | undefined, uid: string): string {
  return keyOf({ namespace, name: uid });
}

export class ProtectedVms {
  readonly #vms: Informer<VirtualMachine>;
  readonly #keys: Readonly<Record<Relation, Map<string, SortedKeys>>> = {
    anywhere: new Map(),
    namespace: new Map(),
    claim: new Map(),
    owner: new Map(),
    state: new Map(),
  };

  /** Follows the VMs until the signal aborts. The index is up to date before its sources trigger a reconcile. */
  constructor(vms: Informer<VirtualMachine>, { signal }: { signal: AbortSignal }) {
    this.#vms = vms;
    const leave = vms.onChange((key, change) => {
      for (const relation of RELATIONS) this.#follow(relation, key, change);
    });
    signal.addEventListener('abort', leave, { once: true });
  }

  /** Returns the keys of the first VMs with this relation, sorted. */
  first(relation: Relation, value: string): readonly string[] {
    return this.#keys[relation].get(value)?.first(MAX_FIRST) ?? [];
  }

  /** `keysOf`: returns the keys to reconcile when a protected VM gains or loses the relation to the value. */
  source(relation: Relation, keysOf: (value: string) => Iterable<string>): Source {
    return {
      cache: this.#vms,
      subscribe: (add) =>
        this.#vms.onChange((_, change) => {
          const { lost, gained } = changedRelations(relation, change);
          for (const value of [...lost, ...gained]) for (const key of keysOf(value)) add(key);
        }),
    };
  }

  #follow(relation: Relation, key: string, change: ObjectChange<VirtualMachine>): void {
    const found = this.#keys[relation];
    const { lost, gained } = changedRelations(relation, change);
    for (const value of lost) {
      const keys = found.get(value);
      keys?.delete(key);
      if (keys?.size === 0) found.delete(value);
    }
    for (const value of gained) {
      const keys = found.get(value) ?? new SortedKeys();
      keys.add(key);
      found.set(value, keys);
    }
  }
}

const NONE: readonly string[] = [];

function changedRelations(relation: Relation, { old, new: next }: ObjectChange<VirtualMachine>) {
  const before = relationsOf(relation, old);
  const after = relationsOf(relation, next);
  return {
    lost: before.filter((value) => !after.includes(value)),
    gained: after.filter((value) => !before.includes(value)),
  };
}

/** Returns nothing for a VM under deletion, which is not protected any more. */
function relationsOf(relation: Relation, vm: Stored<VirtualMachine> | undefined): readonly string[] {
  if (vm === undefined || !isProtected(vm) || vm.metadata.deletionTimestamp !== undefined) return NONE;
  const { namespace = '', uid } = vm.metadata;
  switch (relation) {
    case 'anywhere':
      return [ANYWHERE];
    case 'namespace':
      return [namespace];
    case 'claim':
      return [...new Set([...claimNamesOf(vm.spec.template.spec ?? {}), ...statusClaimNames(vm.status)])].map((name) =>
        keyOf({ namespace, name }),
      );
    case 'owner':
      return [vmOwnerKey(namespace, uid)];
    case 'state':
      return [stateIndexKey(vm.metadata)];
    default:
      return unreachable(relation);
  }
}
