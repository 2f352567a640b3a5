/** Long-running work that can be cancelled by name. Each name has at most one at a time. */
import { invariant } from '#lib/invariant.ts';

export class CancellableWork {
  readonly #running = new Map<string, { readonly own: AbortController; readonly ended: Promise<void> }>();

  /** Runs the work. Returns `cancelled` after `cancel`. All other errors are thrown, including the abort of `signal`. */
  async run(
    name: string,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<void>,
  ): Promise<'done' | 'cancelled'> {
    invariant(!this.#running.has(name), 'work with one name runs once at a time');
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

  /** Does nothing if no work with this name runs. */
  cancel(name: string): void {
    this.#running.get(name)?.own.abort();
  }

  /** Resolves when no work with this name runs. */
  async waitForEnd(name: string): Promise<void> {
    await this.#running.get(name)?.ended;
  }
}
