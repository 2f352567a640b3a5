/**
 * Objects as this process knows them: what its cache shows, or what it wrote itself where the cache has not got there yet.
 * Without it a second look would decide on the state from before our own write.
 */
import type { Informer } from '#client/informer.ts';
import { compareRevisions } from '#client/revision.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';

/** Far more than are ever under way; what is deleted while we write would stay for ever. */
const MAX_WRITTEN = 10_000;

export class OwnWrites<T extends KubeObject> {
  /** By uid; each leaves when the cache has caught up. */
  readonly #written = new Map<string, Stored<T>>();

  wrote(object: Stored<T>): void {
    this.#written.set(object.metadata.uid, object);
    if (this.#written.size > MAX_WRITTEN) this.#written.delete(this.#written.keys().next().value!);
  }

  /** The newer of the two. */
  newest(cached: Stored<T>): Stored<T> {
    const { uid, resourceVersion } = cached.metadata;
    const own = this.#written.get(uid);
    if (own === undefined) return cached;
    if (compareRevisions(own.metadata.resourceVersion, resourceVersion) > 0) return own;
    this.#written.delete(uid);
    return cached;
  }

  /** Lets go of what the informer has seen. The result ends it. */
  follow(informer: Informer<T>): () => void {
    return informer.onChange((_, change) => {
      if (change.new !== undefined) this.newest(change.new);
      else if (change.old !== undefined) this.#written.delete(change.old.metadata.uid);
    });
  }
}
