/**
 * Which VMs have the same firmware uuid. Each is told of those that follow it by name, the last of them of the first: so
 * one that comes or goes changes what a few others are told, however many they are.
 */
import { firmwareUuidOf } from '#api/firmware-uuid-index.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { Informer } from '#client/informer.ts';
import type { Source } from '#runtime/controller.ts';

export interface UuidSharers {
  /** `namespace/name`, sorted; at least one. */
  readonly names: readonly string[];
  /** Whether there are others. */
  readonly more: boolean;
}

const MAX_NAMES = 3;

export class UuidHolders {
  /** The keys of all that have the uuid, sorted. */
  readonly #held = new Map<string, string[]>();
  #sharing = 0;

  /** How many VMs share theirs. */
  get sharing(): number {
    return this.#sharing;
  }

  /** The VM has another uuid, or none; returns who else is to be told something else now. */
  move(key: string, from: string | undefined, to: string | undefined): string[] {
    if (from === to) return [];
    return [
      ...(from === undefined ? [] : this.#change(from, key, false)),
      ...(to === undefined ? [] : this.#change(to, key, true)),
    ];
  }

  /** Undefined where nobody else has it. */
  sharersOf(uuid: string, key: string): UuidSharers | undefined {
    const keys = this.#held.get(uuid) ?? [];
    const { at, found } = placeOf(keys, key);
    const others = found ? keys.length - 1 : keys.length;
    if (others === 0) return undefined;
    const names = Array.from({ length: Math.min(MAX_NAMES, others) }, (_, n) => around(keys, at + n + (found ? 1 : 0)));
    return { names: names.toSorted(), more: others > MAX_NAMES };
  }

  #change(uuid: string, key: string, holds: boolean): string[] {
    const keys = this.#held.get(uuid) ?? [];
    const { at, found } = placeOf(keys, key);
    if (found === holds) return [];
    this.#sharing -= sharingOf(keys);
    if (holds) keys.splice(at, 0, key);
    else keys.splice(at, 1);
    this.#sharing += sharingOf(keys);
    if (keys.length === 0) this.#held.delete(uuid);
    else this.#held.set(uuid, keys);
    // One more than are told of it: where all were named, the last one hears that there are others.
    const told = Array.from({ length: Math.min(MAX_NAMES + 1, keys.length) }, (_, n) => around(keys, at - 1 - n));
    return told.filter((other) => other !== key);
  }
}

/** Looks at each VM that changes; and at those that share its uuid when that changed, not at each write to it. */
export function vmSource(vms: Informer<VirtualMachine>, holders: UuidHolders): Source {
  return {
    cache: vms,
    subscribe: (add) =>
      vms.onChange((key, { old, new: present }) => {
        add(key);
        const from = old === undefined ? undefined : firmwareUuidOf(old);
        const to = present === undefined ? undefined : firmwareUuidOf(present);
        for (const other of holders.move(key, from, to)) add(other);
      }),
  };
}

function sharingOf({ length }: readonly string[]): number {
  return length > 1 ? length : 0;
}

function around(keys: readonly string[], index: number): string {
  return keys[((index % keys.length) + keys.length) % keys.length]!;
}

/** Where the key is, or would be. */
function placeOf(keys: readonly string[], key: string): { at: number; found: boolean } {
  let [low, high] = [0, keys.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (keys[middle]! < key) low = middle + 1;
    else high = middle;
  }
  return { at: low, found: keys[low] === key };
}
