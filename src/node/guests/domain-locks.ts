/** Locks, one for each domain: callers get a lock in the order of their requests. Domains do not wait for each other. */
export class DomainLocks {
  readonly #last = new Map<string, Promise<unknown>>();

  async run<V>(id: string, work: () => Promise<V>): Promise<V> {
    const before = this.#last.get(id);
    const mine = before === undefined ? work() : before.then(work, work);
    this.#last.set(id, mine);
    try {
      return await mine;
    } finally {
      if (this.#last.get(id) === mine) this.#last.delete(id);
    }
  }
}
