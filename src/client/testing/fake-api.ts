/**
 * A small API server in memory, for tests of code that uses a client. It keeps objects of any kind with a history of
 * revisions, pages its lists, and serves watches as bytes. Tests change its objects directly or through a FakeLink, and
 * cause the failures of a real server: see the second half of FakeApi and fake-link.ts.
 *
 * Does not support schemas, selectors and users. Responses follow kube-apiserver where the client depends on it.
 */
import type { ObjectName } from '#client/client.ts';
import { FakeStream } from '#client/testing/fake-stream.ts';
import type { Break } from '#client/testing/fake-stream.ts';
import { objectKey } from '#client/object-key.ts';
import { MODIFIED, alreadyExists, badRequest, conflict, gone, notFound } from '#kube/api-error.ts';
import { applyJsonPatch } from '#kube/patches/json-patch.ts';
import { apiVersionOf, groupResource, isRecord } from '#kube/meta.ts';
import type { KubeObject, ResourceType, Stored, WatchEventType } from '#kube/meta.ts';

export interface FakeEvent {
  readonly revision: number;
  readonly collection: string;
  readonly key: string;
  readonly type: Extract<WatchEventType, 'ADDED' | 'MODIFIED' | 'DELETED'>;
  readonly object: Stored;
}

interface Watcher {
  readonly collection: string;
  readonly prefix: string;
  readonly bookmarks: boolean;
  readonly stream: FakeStream;
}

export class FakeApi {
  revision = 0;
  /** All events in order. `compact` decides from which revision a watch can start. */
  readonly history: FakeEvent[] = [];
  #compacted = 0;
  #uids = 0;
  readonly #objects = new Map<string, Map<string, Stored>>();
  readonly #watchers = new Set<Watcher>();
  readonly #pages = new Map<string, Stored[]>();

  // ---- The API.

  get(type: ResourceType, key: string): Stored {
    const object = this.#collection(type).get(key);
    if (object === undefined) throw notFound(type, key.slice(key.indexOf('/') + 1));
    return object;
  }

  peek<T extends KubeObject>(type: ResourceType<T>, key: string): Stored<T> | undefined {
    return this.#collection(type).get(key) as Stored<T> | undefined;
  }

  all<T extends KubeObject>(type: ResourceType<T>): Stored<T>[] {
    return [...this.#collection(type).values()] as Stored<T>[];
  }

  create(type: ResourceType, object: KubeObject, { dryRun = false } = {}): Stored {
    const key = objectKey(object);
    if (this.#collection(type).has(key)) throw alreadyExists(type, object.metadata.name ?? '');
    const uid = `uid-${++this.#uids}`;
    const creationTimestamp = '2030-01-01T00:00:00Z';
    const metadata = { ...object.metadata, name: object.metadata.name ?? '', uid, creationTimestamp };
    const body = { ...object, apiVersion: apiVersionOf(type), kind: type.kind, metadata };
    return dryRun ? this.#withRevision(body) : this.#commit('ADDED', type, key, body);
  }

  /** Updates the whole object or its status. As in Kubernetes, an update without changes gets no new revision. */
  update(type: ResourceType, object: KubeObject, { subresource }: { subresource?: string | undefined } = {}): Stored {
    const key = objectKey(object);
    const old = this.get(type, key);
    const { resourceVersion, uid } = object.metadata;
    if (resourceVersion !== undefined && resourceVersion !== old.metadata.resourceVersion) {
      throw conflict(type, old.metadata.name, MODIFIED);
    }
    if (uid !== undefined && uid !== old.metadata.uid)
      throw conflict(type, old.metadata.name, 'the uid does not match');
    const { creationTimestamp, deletionTimestamp } = old.metadata;
    const metadata = {
      ...object.metadata,
      ...old.metadata,
      ...ownMetadata(object),
      creationTimestamp,
      deletionTimestamp,
    };
    const next =
      subresource === 'status'
        ? { ...old, status: object['status'] }
        : { ...object, apiVersion: old.apiVersion, kind: old.kind, metadata, status: old['status'] };
    return this.#save(type, key, old, next);
  }

  patch(type: ResourceType, key: string, patch: unknown, options: { subresource?: string | undefined } = {}): Stored {
    const old = this.get(type, key);
    const current = { ...old, metadata: omit(old.metadata, 'resourceVersion') };
    if (Array.isArray(patch)) return this.update(type, applyJsonPatch(current, patch) as KubeObject, options);
    if (!isRecord(patch)) throw badRequest('the fake supports only merge patches and JSON patches');
    return this.update(type, mergePatch(current, patch), options);
  }

  delete(
    type: ResourceType,
    key: string,
    { uid, resourceVersion }: { uid?: string; resourceVersion?: string } = {},
  ): Stored {
    const old = this.get(type, key);
    const { metadata } = old;
    if (uid !== undefined && uid !== metadata.uid) throw conflict(type, metadata.name, 'the UID in the precondition');
    if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion) {
      throw conflict(type, metadata.name, 'the ResourceVersion in the precondition');
    }
    if ((metadata.finalizers ?? []).length === 0) return this.#commit('DELETED', type, key, old);
    return this.#save(type, key, old, { ...old, metadata: { ...metadata, deletionTimestamp: '2030-01-01T00:00:00Z' } });
  }

  list(type: ResourceType, { namespace, limit = 0, token }: { namespace?: string; limit?: number; token?: string }) {
    let [revision, items] = [this.revision, this.#listObjects(type, namespace)];
    let start = 0;
    if (token !== undefined) {
      const page = this.#pages.get(token);
      if (page === undefined) throw gone('The provided continue parameter is too old', 'fresh-token');
      items = page;
      [revision, start] = token.split(':').map(Number) as [number, number];
    }
    const end = limit === 0 ? items.length : Math.min(items.length, start + limit);
    const metadata: Record<string, unknown> = { resourceVersion: String(revision) };
    if (end < items.length) {
      metadata['continue'] = `${revision}:${end}:${groupResource(type)}`;
      this.#pages.set(metadata['continue'] as string, items);
    }
    return { apiVersion: apiVersionOf(type), kind: `${type.kind}List`, metadata, items: items.slice(start, end) };
  }

  watch(
    type: ResourceType,
    { namespace, since, bookmarks }: { namespace?: string; since: number; bookmarks: boolean },
  ) {
    const [collection, prefix] = [groupResource(type), namespace === undefined ? '' : `${namespace}/`];
    const watcher: Watcher = { collection, prefix, bookmarks, stream: new FakeStream() };
    if (since === 0) {
      for (const object of this.#listObjects(type, namespace)) watcher.stream.line({ type: 'ADDED', object });
    } else if (since < this.#compacted) {
      const status = gone(`too old resource version: ${since} (${this.#compacted})`).toStatus();
      watcher.stream.line({ type: 'ERROR', object: status });
      watcher.stream.end();
      return watcher.stream;
    }
    // Like kube-apiserver, waits silently for a revision in the future.
    if (since > 0) for (const event of this.history) if (event.revision > since) this.#send(watcher, event);
    this.#watchers.add(watcher);
    watcher.stream.onClose = () => void this.#watchers.delete(watcher);
    return watcher.stream;
  }

  // ---- Controls for tests.

  /** Creates or updates the object. */
  put<T extends KubeObject>(type: ResourceType<T>, object: T): Stored<T> {
    const known = this.peek(type, objectKey(object));
    return (known === undefined ? this.create(type, object) : this.update(type, object)) as Stored<T>;
  }

  remove(type: ResourceType, { namespace, name }: ObjectName): void {
    this.#commit(
      'DELETED',
      type,
      objectKey({ metadata: { namespace, name } }),
      this.get(type, namespace ? `${namespace}/${name}` : name),
    );
  }

  get watchers(): number {
    return this.#watchers.size;
  }

  /** Makes watches from older revisions and continue tokens fail with 410. */
  compact(): void {
    this.#compacted = this.revision;
    this.#pages.clear();
  }

  /** Breaks every watch. A reset loses what was sent but not read yet. */
  breakWatches(how: Break): void {
    for (const watcher of [...this.#watchers]) {
      this.#watchers.delete(watcher);
      watcher.stream.break(how);
    }
  }

  /** Sends the newest events again. */
  repeat(count: number): void {
    for (const event of this.history.slice(-count)) for (const watcher of this.#watchers) this.#send(watcher, event);
  }

  bookmark(revision = this.revision): void {
    for (const { bookmarks, stream } of this.#watchers) {
      if (bookmarks) stream.line({ type: 'BOOKMARK', object: { metadata: { resourceVersion: String(revision) } } });
    }
  }

  /** Restarts the server. With `at`, restores that older revision: later writes are lost. */
  restart({ at = this.revision }: { at?: number } = {}): void {
    this.breakWatches('reset');
    this.#pages.clear();
    this.revision = at;
    this.#compacted = Math.min(this.#compacted, at);
    const kept = this.history.filter(({ revision }) => revision <= at);
    this.history.splice(0, this.history.length, ...kept);
    this.#objects.clear();
    for (const { collection, type, key, object } of kept) {
      const objects = this.#objectsOf(collection);
      if (type === 'DELETED') objects.delete(key);
      else objects.set(key, object);
    }
  }

  // ---- Internals.

  #collection(type: ResourceType): Map<string, Stored> {
    return this.#objectsOf(groupResource(type));
  }

  #objectsOf(collection: string): Map<string, Stored> {
    let objects = this.#objects.get(collection);
    if (objects === undefined) this.#objects.set(collection, (objects = new Map()));
    return objects;
  }

  #listObjects(type: ResourceType, namespace: string | undefined): Stored[] {
    const prefix = namespace === undefined ? '' : `${namespace}/`;
    const entries = [...this.#collection(type)].filter(([key]) => key.startsWith(prefix));
    return entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
  }

  #save(type: ResourceType, key: string, old: Stored, next: KubeObject): Stored {
    if (JSON.stringify(sortKeys({ ...next, metadata: next.metadata })) === JSON.stringify(sortKeys(old))) return old;
    const isReleased = next.metadata.deletionTimestamp !== undefined && (next.metadata.finalizers ?? []).length === 0;
    return this.#commit(isReleased ? 'DELETED' : 'MODIFIED', type, key, next);
  }

  #withRevision(object: KubeObject, revision?: number): Stored {
    const stamp = revision === undefined ? {} : { resourceVersion: String(revision) };
    return JSON.parse(JSON.stringify({ ...object, metadata: { ...object.metadata, ...stamp } })) as Stored;
  }

  #commit(type: FakeEvent['type'], resource: ResourceType, key: string, object: KubeObject): Stored {
    const revision = ++this.revision;
    const stored = this.#withRevision(object, revision);
    const objects = this.#collection(resource);
    if (type === 'DELETED') objects.delete(key);
    else objects.set(key, stored);
    const event: FakeEvent = { revision, collection: groupResource(resource), key, type, object: stored };
    this.history.push(event);
    for (const watcher of this.#watchers) this.#send(watcher, event);
    return stored;
  }

  #send({ collection, prefix, stream }: Watcher, event: FakeEvent): void {
    if (event.collection !== collection || !event.key.startsWith(prefix)) return;
    stream.line({ type: event.type, object: event.object });
  }
}

/** Returns the metadata that a writer may set. */
function ownMetadata({ metadata }: KubeObject) {
  const { labels, annotations, finalizers, ownerReferences } = metadata;
  return { labels, annotations, finalizers, ownerReferences };
}

function omit<O extends object, K extends keyof O>(object: O, key: K): Omit<O, K> {
  const { [key]: _, ...rest } = object;
  return rest;
}

function mergePatch(target: unknown, patch: Record<string, unknown>): KubeObject {
  const result: Record<string, unknown> = isRecord(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = isRecord(value) ? mergePatch(result[key], value) : value;
  }
  return result as KubeObject;
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (!isRecord(value)) return value;
  const entries = Object.entries(value).filter(([, field]) => field !== undefined);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, field]) => [key, sortKeys(field)]));
}
