/**
 * The objects that this process wrote and that its cache does not show yet. Without them, the next decision would see the
 * state before the process's own write.
 */
import type { Informer } from '#client/informer.ts';
import { compareRevisions } from '#client/revision.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';

/** Far more than are ever needed. Bounds objects that were deleted during the write, which would stay forever. */
const MAX_WRITTEN = 10_000;

export class OwnWrites<T extends KubeObject> {
  /** Objects by uid, until the cache has caught up. */
  readonly #written = new Map<string, Stored<T>>();

  record(object: Stored<T>): void {
    this.#written.set(object.metadata.uid, object);
    if (this.#written.size > MAX_WRITTEN) this.#written.delete(this.#written.keys().next().value!);
  }

  /** Returns the newer one of the cached and the written object. */
  newest(cached: Stored<T>): Stored<T> {
    const { uid, resourceVersion } = cached.metadata;
    const own = this.#written.get(uid);
    if (own === undefined) return cached;
    if (compareRevisions(own.metadata.resourceVersion, resourceVersion) > 0) return own;
    this.#written.delete(uid);
    return cached;
  }

  /** Forgets objects when the informer has seen them. Returns a function that stops it. */
  track(informer: Informer<T>): () => void {
    return informer.onChange((_, change) => {
      if (change.new !== undefined) this.newest(change.new);
      else if (change.old !== undefined) this.#written.delete(change.old.metadata.uid);
    });
  }
}
