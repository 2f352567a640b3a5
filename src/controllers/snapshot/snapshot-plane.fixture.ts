/**
 * A plane in miniature for tests of snapshots: objects in memory, our two definitions that are run by hand, and, told
 * by the test, what the other controllers would do. It can be made to die after any number of writes.
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
import { contentObserver } from '#controllers/snapshot/observe-content.ts';
import { snapshotObserver, type Looks } from '#controllers/snapshot/observe-snapshot.ts';
import { restoredSnapshotKeysOf, UNFINISHED_BY_SNAPSHOT } from '#controllers/snapshot/sources.ts';
import { CREATED, CREATED_MS } from '#controllers/snapshot/snapshot-world.fixture.ts';
import { notFound } from '#kube/api-error.ts';
import { deepClone, deepEqual } from '#kube/deep.ts';
import { applyMergePatch } from '#kube/merge-patch.ts';
import { controllerUid, groupResource, type KubeObject, type ResourceType, type Stored } from '#kube/meta.ts';
import { VOLUME_SNAPSHOTS, type VolumeSnapshot } from '#kube/volume-snapshot-kinds.ts';
import type { Change, Plan } from '#runtime/plan.ts';

/** Thrown in place of a write. */
export class Died extends Error {}

/** A run that takes longer goes round in circles. */
const MAX_ROUNDS = 50;

export class SnapshotPlane {
  readonly #caches = new Map<string, ObjectCache<KubeObject>>();
  readonly #uses = new Map<string, number>();
  /** What Events would tell, in order. */
  readonly told: string[] = [];
  nowMs = CREATED_MS;
  /** Writes of ours that are still possible before the process dies. */
  writesLeft = Number.POSITIVE_INFINITY;
  writes = 0;
  #revision = 1;
  /** For whom the VM is held while the snapshot is taken. */
  holder = 'snap';
  /** Kinds whose caches show nothing yet. */
  readonly behind = new Set<ResourceType>();

  constructor(objects: readonly [ResourceType, Stored][]) {
    this.of(VIRTUAL_MACHINE_RESTORES).addIndex(UNFINISHED_BY_SNAPSHOT, restoredSnapshotKeysOf);
    for (const [type, object] of objects) this.put(type, object);
  }

  of<T extends KubeObject>(type: ResourceType<T>): ObjectCache<T> {
    const key = groupResource(type);
    const cache = this.#caches.get(key) ?? new ObjectCache<KubeObject>();
    this.#caches.set(key, cache);
    return cache as unknown as ObjectCache<T>;
  }

  get<T extends KubeObject>(type: ResourceType<T>, name: string): Stored<T> | undefined {
    return this.of(type).get(keyOf({ namespace: type.namespaced ? 'ns' : undefined, name }));
  }

  get snapshot(): Stored<VirtualMachineSnapshot> | undefined {
    return this.get(VIRTUAL_MACHINE_SNAPSHOTS, 'snap');
  }

  get content(): Stored<VirtualMachineSnapshotContent> | undefined {
    return this.of(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS).list()[0];
  }

  get copies(): Stored<VolumeSnapshot>[] {
    return this.of(VOLUME_SNAPSHOTS).list();
  }

  /** As somebody else writes it; the object gets a new revision. */
  put<T extends KubeObject>(type: ResourceType<T>, object: Stored<T>): void {
    const stored = deepClone(object);
    stored.metadata.resourceVersion = String(++this.#revision);
    const { deletionTimestamp, finalizers = [] } = stored.metadata;
    if (deletionTimestamp !== undefined && finalizers.length === 0) this.of(type).remove(objectKey(stored));
    else this.of(type).put(objectKey(stored), stored);
  }

  delete(type: ResourceType, name: string): void {
    const object = this.get(type, name);
    assert(object !== undefined, `${name} is there`);
    this.put(type, { ...object, metadata: { ...object.metadata, deletionTimestamp: CREATED } });
  }

  /** Somebody deletes a copy by hand. */
  forget(copy: string): void {
    this.#revision++;
    this.of(VOLUME_SNAPSHOTS).remove(keyOf({ namespace: 'ns', name: copy }));
  }

  /** What other controllers do about a snapshot of the VM `db`: the lock, and the garbage of contents that are gone. */
  others(): void {
    const { snapshot } = this;
    const isOpen =
      snapshot !== undefined && snapshot.status?.phase !== 'Succeeded' && snapshot.status?.phase !== 'Failed';
    const vm = this.get(VIRTUAL_MACHINES, 'db');
    const snapshotInProgress = isOpen ? this.holder : undefined;
    if (vm !== undefined && vm.status?.snapshotInProgress !== snapshotInProgress) {
      this.put<VirtualMachine>(VIRTUAL_MACHINES, { ...vm, status: { ...vm.status, snapshotInProgress } });
    }
    const owners = new Set<string | undefined>(
      this.of(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS)
        .list()
        .map(({ metadata }) => metadata.uid),
    );
    for (const copy of this.copies) {
      if (!owners.has(controllerUid(copy))) this.of(VOLUME_SNAPSHOTS).remove(objectKey(copy));
    }
  }

  /** The copies that are there report this from now on. */
  report(status: NonNullable<VolumeSnapshot['status']>, which: (name: string) => boolean = () => true): void {
    for (const copy of this.copies) {
      if (which(copy.metadata.name)) this.put<VolumeSnapshot>(VOLUME_SNAPSHOTS, { ...copy, status });
    }
  }

  /** Everybody works until nobody has anything to do. */
  async settle(): Promise<void> {
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const before = this.#revision;
      this.others();
      await this.#reconcile();
      if (this.#revision === before) return;
    }
    assert.fail('the controllers do not come to rest');
  }

  async #reconcile(): Promise<void> {
    const options = { signal: new AbortController().signal };
    for (const snapshot of this.of(VIRTUAL_MACHINE_SNAPSHOTS).list()) {
      const world = await snapshotObserver(this.#looks())(objectKey(snapshot), options);
      if (world !== undefined) this.#apply(decideSnapshot(world), VIRTUAL_MACHINE_SNAPSHOTS, snapshot);
    }
    for (const content of this.of(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS).list()) {
      const world = await contentObserver(this.#looks())(objectKey(content), options);
      if (world !== undefined) this.#apply(decideContent(world), VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, content);
    }
  }

  #looks(): Looks {
    const get = <T extends KubeObject>(type: ResourceType<T>, name: ObjectName): Promise<Stored<T>> => {
      const found = this.of(type).get(keyOf(name));
      return found === undefined ? Promise.reject(notFound(type, name.name)) : Promise.resolve(found);
    };
    return {
      client: { get } as unknown as Client,
      informer: <T extends KubeObject>(type: ResourceType<T>) =>
        (this.behind.has(type) ? new ObjectCache<T>() : this.of(type)) as unknown as Informer<T>,
      clock: { now: () => this.nowMs, elapsed: () => this.nowMs, after: () => () => undefined },
    };
  }

  #apply({ status, changes, events = [] }: Plan, type: ResourceType, subject: Stored): void {
    if (status !== undefined && !deepEqual(subject['status'] ?? {}, status)) {
      this.#write();
      this.put(type, { ...subject, status });
    }
    this.told.push(...events.map(({ message }) => message));
    for (const change of changes) {
      this.#write();
      this.#change(change);
      if (change.do !== 'patch') this.told.push(change.why);
    }
  }

  #write(): void {
    if (this.writesLeft-- <= 0) throw new Died();
    this.writes++;
  }

  #change(change: Change): void {
    const { type } = change;
    if (change.do === 'create') {
      const { name = '', namespace } = change.object.metadata;
      assert.equal(this.of(type).get(keyOf({ namespace, name })), undefined, `${name} is made once`);
      const uses = (this.#uses.get(name) ?? 0) + 1;
      this.#uses.set(name, uses);
      const metadata = { ...change.object.metadata, name, uid: `${name}#${uses}`, creationTimestamp: CREATED };
      return this.put(type, { ...change.object, metadata: { ...metadata, resourceVersion: '' } });
    }
    const found = this.of(type).get(keyOf(change.name));
    assert.equal(found?.metadata.uid, change.uid, 'only the very object is changed');
    if (change.do === 'delete') return this.delete(type, change.name.name);
    const { metadata } = change.patch.body as KubeObject;
    assert.equal(metadata.resourceVersion, found?.metadata.resourceVersion, 'finalizers are changed as they were seen');
    this.put(type, applyMergePatch(found, change.patch.body) as Stored);
  }
}
