/**
 * Which protected VMs would be lost with what: an index of the protected ones, in order, so that the first few of any
 * number are found at once. It also knows whom to wake when a VM changes: only those to whom a tie has come or gone. The
 * rest of what VMs do, status writes above all, concerns nobody here.
 */
import { claimNamesOf } from '#api/claim-names.ts';
import { isProtected } from '#api/delete-protection.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { Informer } from '#client/informer.ts';
import type { ObjectChange } from '#client/object-cache.ts';
import { keyOf } from '#client/object-key.ts';
import { stateIndexKey } from '#controllers/persistent-state/claims-by-state.ts';
import { SortedKeys } from '#controllers/protection/sorted-keys.ts';
import type { Stored } from '#kube/meta.ts';
import { unreachable } from '#lib/invariant.ts';
import type { Source } from '#runtime/controller.ts';

/**
 * What a VM hangs on: that VMs are at all, its namespace, the claims that its template names now, itself as an owner, the
 * key by which its persistent state is found.
 */
export type Tie = 'anywhere' | 'namespace' | 'claim' | 'owner' | 'state';

const TIES: readonly Tie[] = ['anywhere', 'namespace', 'claim', 'owner', 'state'];

/** The one value of the tie `anywhere`. */
export const ANYWHERE = '';

/** More than a mark lists, so that it is seen that there are others. */
export const ENOUGH = 10;

/** An owner is of the same namespace: who names one of another has none. */
export function ownerKey(namespace: string | undefined, uid: string): string {
  return keyOf({ namespace, name: uid });
}

export class ProtectedVms {
  readonly #vms: Informer<VirtualMachine>;
  readonly #found: Readonly<Record<Tie, Map<string, SortedKeys>>> = {
    anywhere: new Map(),
    namespace: new Map(),
    claim: new Map(),
    owner: new Map(),
    state: new Map(),
  };

  /** Follows the VMs until the signal aborts. Whoever is woken by a source of it finds it as new as the VMs are. */
  constructor(vms: Informer<VirtualMachine>, { signal }: { signal: AbortSignal }) {
    this.#vms = vms;
    const leave = vms.onChange((key, change) => {
      for (const tie of TIES) this.#follow(tie, key, change);
    });
    signal.addEventListener('abort', leave, { once: true });
  }

  /** The keys of the first of them, in order. */
  first(tie: Tie, value: string): readonly string[] {
    return this.#found[tie].get(value)?.first(ENOUGH) ?? [];
  }

  /** `wakes`: the names to look at when a protected VM gets such a tie, or has it no more. */
  source(tie: Tie, wakes: (value: string) => Iterable<string>): Source {
    return {
      cache: this.#vms,
      subscribe: (add) =>
        this.#vms.onChange((_, change) => {
          const { gone, come } = changedTies(tie, change);
          for (const value of [...gone, ...come]) for (const key of wakes(value)) add(key);
        }),
    };
  }

  #follow(tie: Tie, key: string, change: ObjectChange<VirtualMachine>): void {
    const found = this.#found[tie];
    const { gone, come } = changedTies(tie, change);
    for (const value of gone) {
      const keys = found.get(value);
      keys?.delete(key);
      if (keys?.size === 0) found.delete(value);
    }
    for (const value of come) {
      const keys = found.get(value) ?? new SortedKeys();
      keys.add(key);
      found.set(value, keys);
    }
  }
}

const NONE: readonly string[] = [];

function changedTies(tie: Tie, { old, new: next }: ObjectChange<VirtualMachine>) {
  const before = tiesOf(tie, old);
  const after = tiesOf(tie, next);
  return {
    gone: before.filter((value) => !after.includes(value)),
    come: after.filter((value) => !before.includes(value)),
  };
}

/** One that is being deleted cannot be protected any more. */
function tiesOf(tie: Tie, vm: Stored<VirtualMachine> | undefined): readonly string[] {
  if (vm === undefined || !isProtected(vm) || vm.metadata.deletionTimestamp !== undefined) return NONE;
  const { namespace = '', uid } = vm.metadata;
  switch (tie) {
    case 'anywhere':
      return [ANYWHERE];
    case 'namespace':
      return [namespace];
    case 'claim':
      return claimNamesOf(vm.spec.template.spec ?? {}).map((name) => keyOf({ namespace, name }));
    case 'owner':
      return [ownerKey(namespace, uid)];
    case 'state':
      return [stateIndexKey(vm.metadata)];
    default:
      return unreachable(tie);
  }
}
