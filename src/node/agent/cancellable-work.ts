/** Long work by name, which is given up when nobody wants it any more. One at a time for each name. */
import { invariant } from '#lib/invariant.ts';

export class CancellableWork {
  readonly #running = new Map<string, { readonly own: AbortController; readonly ended: Promise<void> }>();

  /** `cancelled` where it was given up; what else it throws is thrown, and so is the end of `signal`. */
  async run(
    name: string,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<void>,
  ): Promise<'done' | 'cancelled'> {
    invariant(!this.#running.has(name), 'work of one name runs once at a time');
    const own = new AbortController();
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    this.#running.set(name, { own, ended });
    try {
      await work(AbortSignal.any([signal, own.signal]));
      return 'done';
    } catch (error) {
      if (own.signal.aborted && !signal.aborted) return 'cancelled';
      throw error;
    } finally {
      this.#running.delete(name);
      end();
    }
  }

  /** Fine where nothing of this name runs. */
  cancel(name: string): void {
    this.#running.get(name)?.own.abort();
  }

  /** Resolves when nothing of this name runs any more. */
  async ended(name: string): Promise<void> {
    await this.#running.get(name)?.ended;
  }
}
