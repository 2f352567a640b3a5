/**
 * Answers from the server whether an object is in use, for decisions that cannot be undone, such as the release of a
 * finalizer: a cache may be behind. One list of the users serves all objects that are older than the list, so that the
 * deletion of many objects does not list all users for each of them.
 *
 * Such a list can only prove that an object is unused, because the users that it shows may be gone since. And it proves
 * that only for objects that nothing starts to use any more, such as those under deletion.
 */
import type { Reader } from '#client/client.ts';
import { listAll } from '#client/paged-list.ts';
import { compareRevisions } from '#client/revision.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';

/**
 * The time after which an object that is in use is checked again: a user that came and went while the cache was behind
 * causes no change there.
 */
export const USE_RECHECK_MS = 30_000;

interface UsedKeys {
  readonly namespace: string | undefined;
  readonly resourceVersion: string;
  readonly keys: ReadonlySet<string>;
}

export class LiveUse<T extends KubeObject> {
  readonly #reader: Pick<Reader, 'list'>;
  readonly #type: ResourceType<T>;
  readonly #keysUsedBy: (user: Stored<T>) => readonly string[];
  /** The newest list, of one namespace. */
  #latest: UsedKeys | undefined;

  /** `type`: the kind of the users. `keysUsedBy` returns the keys of the objects that one of them uses. */
  constructor(reader: Pick<Reader, 'list'>, type: ResourceType<T>, keysUsedBy: (user: Stored<T>) => readonly string[]) {
    this.#reader = reader;
    this.#type = type;
    this.#keysUsedBy = keysUsedBy;
  }

  /** Reports whether the object is in use. `namespace`: that of the users, which is undefined if they have none. */
  async isUsed(
    key: string,
    { namespace, resourceVersion }: { readonly namespace?: string | undefined; readonly resourceVersion: string },
    options: { signal: AbortSignal },
  ): Promise<boolean> {
    const known = this.#latest;
    const provesUnused =
      known !== undefined &&
      known.namespace === namespace &&
      compareRevisions(known.resourceVersion, resourceVersion) >= 0 &&
      !known.keys.has(key);
    return !provesUnused && (await this.#list(namespace, options)).keys.has(key);
  }

  async #list(namespace: string | undefined, { signal }: { signal: AbortSignal }): Promise<UsedKeys> {
    const { items, resourceVersion } = await listAll(this.#reader, this.#type, { namespace, signal });
    this.#latest = { namespace, resourceVersion, keys: new Set(items.flatMap(this.#keysUsedBy)) };
    return this.#latest;
  }
}
