/**
 * The order in which instances appeared in the cache. Of two instances that need the same claim and were created within
 * a second, the one that appeared first starts: the other one was not known when that was decided. Kept in memory while
 * an instance exists; after a restart all instances are known before anything is decided, and any order is right.
 */
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Informer } from '#client/informer.ts';
import type { Stored } from '#kube/meta.ts';

export class ArrivalOrder {
  readonly #numbers = new Map<string, number>();
  #next = 0;

  constructor(vmis: Pick<Informer<VirtualMachineInstance>, 'onChange'>, signal: AbortSignal) {
    const unsubscribe = vmis.onChange((_, { old, new: next }) => {
      const [before, now] = [old?.metadata.uid, next?.metadata.uid];
      if (before !== undefined && before !== now) this.#numbers.delete(before);
      if (now !== undefined && !this.#numbers.has(now)) this.#numbers.set(now, this.#next++);
    });
    signal.addEventListener('abort', unsubscribe, { once: true });
  }

  isBefore(a: Pick<Stored, 'metadata'>, b: Pick<Stored, 'metadata'>): boolean {
    return this.#numberOf(a) < this.#numberOf(b);
  }

  #numberOf({ metadata }: Pick<Stored, 'metadata'>): number {
    return this.#numbers.get(metadata.uid) ?? Number.MAX_SAFE_INTEGER;
  }
}
