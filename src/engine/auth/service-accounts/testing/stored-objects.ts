/** A memory store with objects, for tests of bound tokens. */
import { encodeStored } from '#engine/encoding/stored-object.ts';
import { openMemoryStore } from '#engine/store/testing/memory-store.ts';
import type { Store } from '#engine/store/store.ts';
import type { KubeObject, ObjectMeta } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';

export const NAMESPACE = 'ns';
export const ACCOUNT = { name: 'robot', uid: 'uid-robot' };

const CLUSTER_SCOPED = new Set(['nodes', 'namespaces']);

export async function storeWith(...objects: readonly [plural: string, object: KubeObject][]): Promise<Store> {
  const store = await openMemoryStore();
  for (const [plural, object] of objects) await put(store, plural, object);
  return store;
}

/** `name` gets the uid `uid-name`, unless the metadata override it. */
export function aStoredObject(kind: string, name: string, fields: Record<string, unknown> = {}): KubeObject {
  const { metadata, ...rest } = fields as { metadata?: ObjectMeta };
  return {
    apiVersion: 'v1',
    kind,
    metadata: { name, namespace: NAMESPACE, uid: `uid-${name}`, ...metadata },
    ...rest,
  };
}

export async function put(store: Store, plural: string, object: KubeObject): Promise<void> {
  const id = idOf(plural, object.metadata.name ?? '');
  const expected = store.latest(plural, id)?.revision ?? 0;
  await store.put({ collection: plural, id, expected, encode: (revision) => encodeStored(object, revision) });
}

export async function remove(store: Store, plural: string, name: string): Promise<void> {
  const id = idOf(plural, name);
  const entry = store.latest(plural, id)!;
  await store.delete({ collection: plural, id, expected: entry.revision, encode: () => entry.bytes });
}

function idOf(plural: string, name: string): string {
  return CLUSTER_SCOPED.has(plural) ? name : `${NAMESPACE}/${name}`;
}

/** A clock that a test sets; timers fire on demand. */
export class ManualClock implements Clock {
  #nowMs = 1_900_000_000_000;
  readonly #timers = new Set<() => void>();

  now(): number {
    return this.#nowMs;
  }

  elapsed(): number {
    return this.#nowMs;
  }

  after(_ms: number, fn: () => void): () => void {
    this.#timers.add(fn);
    return () => void this.#timers.delete(fn);
  }

  move(ms: number): void {
    this.#nowMs += ms;
  }

  get waiting(): number {
    return this.#timers.size;
  }

  fireAll(): void {
    for (const fn of this.#timers) fn();
  }
}
