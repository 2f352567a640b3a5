/**
 * A plane in memory for tests of snapshots: the objects, the two controllers, and the actions of the other controllers,
 * which the test triggers. The controllers can crash after any number of writes.
 */
import assert from 'node:assert/strict';
import { VIRTUAL_MACHINE_SNAPSHOTS, type VirtualMachineSnapshot } from '#api/virtual-machine-snapshot/kind.ts';
import {
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  type VirtualMachineSnapshotContent,
} from '#api/virtual-machine-snapshot-content/kind.ts';
import { VIRTUAL_MACHINE_RESTORES } from '#api/virtual-machine-restore/kind.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { Client, ObjectName } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { ObjectCache } from '#client/object-cache.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { decideContent } from '#controllers/snapshot/decide-content.ts';
import { decideSnapshot } from '#controllers/snapshot/decide-snapshot.ts';
import { createContentObserver } from '#controllers/snapshot/observe-content.ts';
import { createSnapshotObserver, type ObserverParts } from '#controllers/snapshot/observe-snapshot.ts';
import { snapshotKeysOfRestore, UNFINISHED_BY_SNAPSHOT } from '#controllers/snapshot/sources.ts';
import { CREATED, CREATED_MS } from '#controllers/snapshot/testing/snapshot-world.ts';
import { notFound } from '#kube/api-error.ts';
import { deepClone, deepEqual } from '#kube/deep.ts';
import { applyMergePatch } from '#kube/patches/merge-patch.ts';
import { controllerUid, groupResource, type KubeObject, type ResourceType, type Stored } from '#kube/meta.ts';
import { VOLUME_SNAPSHOTS, type VolumeSnapshot } from '#kube/volume-snapshot-kinds.ts';
import type { Change, Plan } from '#runtime/plan.ts';

/** Thrown instead of a write. */
export class CrashError extends Error {}

/** More rounds than any test needs. */
const MAX_ROUNDS = 50;

export class SnapshotPlane {
  readonly #caches = new Map<string, ObjectCache<KubeObject>>();
  readonly #uses = new Map<string, number>();
  /** The messages of all Events, in order. */
  readonly eventMessages: string[] = [];
  nowMs = CREATED_MS;
  /** Number of writes until the controllers crash. */
  writesLeft = Number.POSITIVE_INFINITY;
  writes = 0;
  #revision = 1;
  /** Name of the snapshot that holds the VM. */
  holder = 'snap';
  /** Kinds whose caches are still empty. */
  readonly emptyCaches = new Set<ResourceType>();

  constructor(objects: readonly [ResourceType, Stored][]) {
    this.cacheOf(VIRTUAL_MACHINE_RESTORES).addIndex(UNFINISHED_BY_SNAPSHOT, snapshotKeysOfRestore);
    for (const [type, object] of objects) this.put(type, object);
  }

  cacheOf<T extends KubeObject>(type: ResourceType<T>): ObjectCache<T> {
    const key = groupResource(type);
    const cache = this.#caches.get(key) ?? new ObjectCache<KubeObject>();
    this.#caches.set(key, cache);
    return cache as unknown as ObjectCache<T>;
  }

  get<T extends KubeObject>(type: ResourceType<T>, name: string): Stored<T> | undefined {
    return this.cacheOf(type).get(keyOf({ namespace: type.namespaced ? 'ns' : undefined, name }));
  }

  get snapshot(): Stored<VirtualMachineSnapshot> | undefined {
    return this.get(VIRTUAL_MACHINE_SNAPSHOTS, 'snap');
  }

  get content(): Stored<VirtualMachineSnapshotContent> | undefined {
    return this.cacheOf(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS).list()[0];
  }

  get copies(): Stored<VolumeSnapshot>[] {
    return this.cacheOf(VOLUME_SNAPSHOTS).list();
  }

  /** Stores the object with a new revision, like a write of another client. */
  put<T extends KubeObject>(type: ResourceType<T>, object: Stored<T>): void {
    const stored = deepClone(object);
    stored.metadata.resourceVersion = String(++this.#revision);
    const { deletionTimestamp, finalizers = [] } = stored.metadata;
    if (deletionTimestamp !== undefined && finalizers.length === 0) this.cacheOf(type).remove(objectKey(stored));
    else this.cacheOf(type).put(objectKey(stored), stored);
  }

  delete(type: ResourceType, name: string): void {
    const object = this.get(type, name);
    assert(object !== undefined, `${name} exists`);
    this.put(type, { ...object, metadata: { ...object.metadata, deletionTimestamp: CREATED } });
  }

  /** Deletes a copy, like a user. */
  deleteCopy(copy: string): void {
    this.#revision++;
    this.cacheOf(VOLUME_SNAPSHOTS).remove(keyOf({ namespace: 'ns', name: copy }));
  }

  /** Runs the other controllers for a snapshot of the VM `db`: the hold of the VM, and the garbage collector. */
  runOtherControllers(): void {
    const { snapshot } = this;
    const isOpen =
      snapshot !== undefined && snapshot.status?.phase !== 'Succeeded' && snapshot.status?.phase !== 'Failed';
    const vm = this.get(VIRTUAL_MACHINES, 'db');
    const snapshotInProgress = isOpen ? this.holder : undefined;
    if (vm !== undefined && vm.status?.snapshotInProgress !== snapshotInProgress) {
      this.put<VirtualMachine>(VIRTUAL_MACHINES, { ...vm, status: { ...vm.status, snapshotInProgress } });
    }
    const owners = new Set<string | undefined>(
      this.cacheOf(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS)
        .list()
        .map(({ metadata }) => metadata.uid),
    );
    for (const copy of this.copies) {
      if (!owners.has(controllerUid(copy))) this.cacheOf(VOLUME_SNAPSHOTS).remove(objectKey(copy));
    }
  }

  /** Sets the status of the existing copies. */
  report(status: NonNullable<VolumeSnapshot['status']>, which: (name: string) => boolean = () => true): void {
    for (const copy of this.copies) {
      if (which(copy.metadata.name)) this.put<VolumeSnapshot>(VOLUME_SNAPSHOTS, { ...copy, status });
    }
  }

  /** Runs all controllers until none has anything to do. */
  async settle(): Promise<void> {
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const before = this.#revision;
      this.runOtherControllers();
      await this.#reconcile();
      if (this.#revision === before) return;
    }
    assert.fail(`Cannot settle: objects still change after ${MAX_ROUNDS} rounds`);
  }

  async #reconcile(): Promise<void> {
    const options = { signal: new AbortController().signal };
    for (const snapshot of this.cacheOf(VIRTUAL_MACHINE_SNAPSHOTS).list()) {
      const world = await createSnapshotObserver(this.#observerParts())(objectKey(snapshot), options);
      if (world !== undefined) this.#apply(decideSnapshot(world), VIRTUAL_MACHINE_SNAPSHOTS, snapshot);
    }
    for (const content of this.cacheOf(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS).list()) {
      const world = await createContentObserver(this.#observerParts())(objectKey(content), options);
      if (world !== undefined) this.#apply(decideContent(world), VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, content);
    }
  }

  #observerParts(): ObserverParts {
    const list = (type: ResourceType) =>
      Promise.resolve({ items: this.cacheOf(type).list(), metadata: { resourceVersion: String(this.#revision) } });
    const get = <T extends KubeObject>(type: ResourceType<T>, name: ObjectName): Promise<Stored<T>> => {
      const found = this.cacheOf(type).get(keyOf(name));
      return found === undefined ? Promise.reject(notFound(type, name.name)) : Promise.resolve(found);
    };
    return {
      client: { get, list } as unknown as Client,
      informer: <T extends KubeObject>(type: ResourceType<T>) =>
        (this.emptyCaches.has(type) ? new ObjectCache<T>() : this.cacheOf(type)) as unknown as Informer<T>,
      clock: { now: () => this.nowMs, elapsed: () => this.nowMs, after: () => () => undefined },
    };
  }

  #apply({ status, changes, events = [] }: Plan, type: ResourceType, subject: Stored): void {
    if (status !== undefined && !deepEqual(subject['status'] ?? {}, status)) {
      this.#countWrite();
      this.put(type, { ...subject, status });
    }
    this.eventMessages.push(...events.map(({ message }) => message));
    for (const change of changes) {
      this.#countWrite();
      this.#applyChange(change);
      if (change.do !== 'patch') this.eventMessages.push(change.why);
    }
  }

  #countWrite(): void {
    if (this.writesLeft-- <= 0) throw new CrashError();
    this.writes++;
  }

  #applyChange(change: Change): void {
    const { type } = change;
    if (change.do === 'create') {
      const { name = '', namespace } = change.object.metadata;
      assert.equal(this.cacheOf(type).get(keyOf({ namespace, name })), undefined, `${name} is created once`);
      const uses = (this.#uses.get(name) ?? 0) + 1;
      this.#uses.set(name, uses);
      const metadata = { ...change.object.metadata, name, uid: `${name}#${uses}`, creationTimestamp: CREATED };
      return this.put(type, { ...change.object, metadata: { ...metadata, resourceVersion: '' } });
    }
    const found = this.cacheOf(type).get(keyOf(change.name));
    assert.equal(found?.metadata.uid, change.uid, 'the change names the uid of the object');
    if (change.do === 'delete') return this.delete(type, change.name.name);
    const { metadata } = change.patch.body as KubeObject;
    assert.equal(metadata.resourceVersion, found?.metadata.resourceVersion, 'the patch has the observed version');
    this.put(type, applyMergePatch(found, change.patch.body) as Stored);
  }
}
