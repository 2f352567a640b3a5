/**
 * Finds VMs with the same firmware uuid, MAC address or IP address. Each VM reports only a few of its duplicates: those that follow
 * it by name, with the first after the last. So a VM that is added or removed changes the report of a few others,
 * however many there are.
 */
import { firmwareUuidOf } from '#api/identity/firmware-uuid-index.ts';
import { macAddressesOf } from '#api/identity/mac-address-index.ts';
import { claimedAddressesOf } from '#api/network/owned-addresses.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { Informer } from '#client/informer.ts';
import { controllerUid, type KubeObject } from '#kube/meta.ts';
import type { Source } from '#runtime/controller.ts';

export interface ValueSharers {
  /** `namespace/name`, sorted; at least one. */
  readonly names: readonly string[];
  /** True if there are more than `names`. */
  readonly hasMore: boolean;
}

const MAX_NAMES = 3;

export class ValueHolders {
  /** The sorted keys of the VMs with each value. */
  readonly #held = new Map<string, string[]>();
  #sharing = 0;

  /** The number of values of VMs that another VM has, too. */
  get sharingCount(): number {
    return this.#sharing;
  }

  /** Records a changed value of a VM and returns the keys of the other VMs whose sharers have changed. */
  setValue(key: string, from: string | undefined, to: string | undefined): string[] {
    if (from === to) return [];
    return [
      ...(from === undefined ? [] : this.#change(from, key, false)),
      ...(to === undefined ? [] : this.#change(to, key, true)),
    ];
  }

  /** Returns other VMs with the value, or undefined if there are none. */
  sharersOf(value: string, key: string): ValueSharers | undefined {
    const keys = this.#held.get(value) ?? [];
    const { at, found } = findPosition(keys, key);
    const others = found ? keys.length - 1 : keys.length;
    if (others === 0) return undefined;
    const names = Array.from({ length: Math.min(MAX_NAMES, others) }, (_, n) => itemAt(keys, at + n + (found ? 1 : 0)));
    return { names: names.toSorted(), hasMore: others > MAX_NAMES };
  }

  #change(value: string, key: string, holds: boolean): string[] {
    const keys = this.#held.get(value) ?? [];
    const { at, found } = findPosition(keys, key);
    if (found === holds) return [];
    this.#sharing -= sharingOf(keys);
    if (holds) keys.splice(at, 0, key);
    else keys.splice(at, 1);
    this.#sharing += sharingOf(keys);
    if (keys.length === 0) this.#held.delete(value);
    else this.#held.set(value, keys);
    // One more than MAX_NAMES: a VM that named all of its sharers must now report that there are more.
    const affected = Array.from({ length: Math.min(MAX_NAMES + 1, keys.length) }, (_, n) => itemAt(keys, at - 1 - n));
    return affected.filter((other) => other !== key);
  }
}

/** Wakes each VM whose record changes and, if the addresses that it claims have changed, the other VMs that share them. */
export function addressSharerSources(
  vms: Informer<VirtualMachine>,
  identities: Informer<VirtualMachineIdentity>,
  addresses: ValueHolders,
): readonly Source[] {
  const claimed = new Map<string, readonly string[]>();
  const update = (key: string): string[] => {
    const [vm, record] = [vms.get(key), identities.get(key)];
    const own = record !== undefined && controllerUid(record) === vm?.metadata.uid ? record : undefined;
    const after = vm === undefined ? [] : claimedTexts(vm, own);
    const before = claimed.get(key) ?? [];
    if (after.length === 0) claimed.delete(key);
    else claimed.set(key, after);
    return changeValues(addresses, key, { before, after });
  };
  const follow = <T extends KubeObject>(cache: Informer<T>): Source => ({
    cache,
    subscribe: (add) =>
      cache.onChange((key) => {
        for (const other of update(key)) add(other);
      }),
  });
  return [follow(vms), follow(identities)];
}

/** Returns the addresses that a VM has or asks for, each once. */
export function claimedTexts(vm: VirtualMachine, record: VirtualMachineIdentity | undefined): string[] {
  return [...new Set(claimedAddressesOf(vm, record?.spec).map(({ address }) => address))];
}

/** The VMs with each firmware uuid and with each MAC address. */
export interface IdentityHolders {
  readonly uuids: ValueHolders;
  readonly macs: ValueHolders;
}

/** Wakes each VM that changes and, if its uuid or MAC addresses have changed, the other VMs whose sharers have changed. */
export function vmAndSharerSource(vms: Informer<VirtualMachine>, { uuids, macs }: IdentityHolders): Source {
  return {
    cache: vms,
    subscribe: (add) =>
      vms.onChange((key, { old, new: present }) => {
        add(key);
        const from = old === undefined ? undefined : firmwareUuidOf(old);
        const to = present === undefined ? undefined : firmwareUuidOf(present);
        for (const other of uuids.setValue(key, from, to)) add(other);
        for (const other of changeMacs(macs, key, { old, present })) add(other);
      }),
  };
}

interface ChangedVm {
  readonly old: VirtualMachine | undefined;
  readonly present: VirtualMachine | undefined;
}

/** Returns the keys of the other VMs whose sharers have changed. */
function changeMacs(macs: ValueHolders, key: string, { old, present }: ChangedVm): string[] {
  const before = old === undefined ? [] : macAddressesOf(old);
  const after = present === undefined ? [] : macAddressesOf(present);
  return changeValues(macs, key, { before, after });
}

interface ChangedValues {
  readonly before: readonly string[];
  readonly after: readonly string[];
}

function changeValues(holders: ValueHolders, key: string, { before, after }: ChangedValues): string[] {
  return [
    ...before.filter((value) => !after.includes(value)).flatMap((value) => holders.setValue(key, value, undefined)),
    ...after.filter((value) => !before.includes(value)).flatMap((value) => holders.setValue(key, undefined, value)),
  ];
}

function sharingOf({ length }: readonly string[]): number {
  return length > 1 ? length : 0;
}

function itemAt(keys: readonly string[], index: number): string {
  return keys[((index % keys.length) + keys.length) % keys.length]!;
}

/** Returns the index of the key, or the index at which to insert it. */
function findPosition(keys: readonly string[], key: string): { at: number; found: boolean } {
  let [low, high] = [0, keys.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (keys[middle]! < key) low = middle + 1;
    else high = middle;
  }
  return { at: low, found: keys[low] === key };
}
