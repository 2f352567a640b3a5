/** The informers of all controllers: one per kind, created for the first controller that needs it. */
import type { Reader } from '#client/client.ts';
import { Informer } from '#client/informer.ts';
import { groupResource, type KubeObject, type ResourceType } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';

interface SharedInformerOptions {
  readonly reader: Reader;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

export class SharedInformers {
  readonly #options: SharedInformerOptions;
  readonly #informers = new Map<string, { readonly informer: Informer<KubeObject>; readonly stopped: Promise<void> }>();

  constructor(options: SharedInformerOptions) {
    this.#options = options;
  }

  of<T extends KubeObject>(type: ResourceType<T>): Informer<T> {
    const key = groupResource(type);
    let known = this.#informers.get(key);
    if (known === undefined) {
      const informer = new Informer<KubeObject>({ ...this.#options, type });
      known = { informer, stopped: informer.start({ signal: this.#options.signal }) };
      this.#informers.set(key, known);
    }
    return known.informer as unknown as Informer<T>;
  }

  async waitForSync(): Promise<void> {
    await Promise.all([...this.#informers.values()].map(({ informer }) => informer.waitForSync()));
  }

  /** Resolves when the signal is aborted and all informers have stopped. */
  async stopped(): Promise<void> {
    await Promise.all([...this.#informers.values()].map(({ stopped }) => stopped));
  }
}
