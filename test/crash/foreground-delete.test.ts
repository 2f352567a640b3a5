/**
 * Kills the process after each write of a foreground delete and of a namespace delete. After a restart both complete,
 * and no other object is lost or changed.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Store } from '#engine/store/store.ts';
import { startBareApi, startCollector, type Collector } from '#test/crash/collector.ts';
import { fastClock, forEachCrashPoint, awaitStored, type CrashScenario } from '#test/support/crash-points.ts';
import type { Loose, TestApi } from '#test/support/test-api.ts';

const NAMESPACES = '/api/v1/namespaces';
const HOLD = 'example.org/hold';

class Plane {
  readonly #api: TestApi;
  readonly #collector: Collector;
  readonly #endOperator: () => void;
  readonly #before: Map<string, string>;

  static async start(store: Store, before: Map<string, string>): Promise<Plane> {
    // Half a second for a controller takes a few milliseconds.
    const clock = fastClock(50);
    const api = await startBareApi({ store, clock });
    return new Plane(api, await startCollector(api, { clock }), before);
  }

  constructor(api: TestApi, collector: Collector, before: Map<string, string>) {
    this.#api = api;
    this.#collector = collector;
    this.#before = before;
    this.#endOperator = this.#startOperator();
  }

  /** Starts a third-party operator, which removes its finalizer from objects that are being deleted. */
  #startOperator(): () => void {
    const { store } = this.#api;
    const removeFinalizers = () => {
      for (const { id, bytes } of store.list('configmaps').entries) {
        const { metadata }: Loose = JSON.parse(bytes.toString('utf8'));
        if (metadata.deletionTimestamp === undefined || !metadata.finalizers?.includes(HOLD)) continue;
        const finalizers = metadata.finalizers.filter((name: string) => name !== HOLD);
        const url = `${NAMESPACES}/${id.replace('/', '/configmaps/')}`;
        // A conflicting write may come first: the operator then sees the object again.
        void this.#api.call('PATCH', url, { body: { metadata: { uid: metadata.uid, finalizers } } });
      }
    };
    const end = store.watch({ collection: 'configmaps', since: store.revision }, removeFinalizers);
    removeFinalizers();
    return end;
  }

  async stop(): Promise<void> {
    this.#endOperator();
    await this.#collector.stop();
    await this.#api.stop();
  }

  makeNamespace(name: string): Promise<Loose> {
    return this.#api.ok('POST', NAMESPACES, { body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } } });
  }

  make(namespace: string, name: string, owners: readonly Loose[] = [], finalizers?: readonly string[]): Promise<Loose> {
    const metadata = { name, ownerReferences: owners, finalizers };
    const url = `${NAMESPACES}/${namespace}/configmaps`;
    return this.#api.ok('POST', url, { body: { apiVersion: 'v1', kind: 'ConfigMap', metadata } });
  }

  /** Deletes like a client that repeats a request without an answer: an object that is already gone is a success. */
  async delete(path: string, propagationPolicy: string): Promise<void> {
    const { status, text } = await this.#api.call('DELETE', `${NAMESPACES}/${path}`, { body: { propagationPolicy } });
    assert.ok([200, 404, 409].includes(status), text);
  }

  /** Remembers the objects that must not change. */
  rememberStates(): void {
    for (const [id, state] of this.#states()) this.#before.set(id, state);
  }

  waitUntil(gone: () => boolean): Promise<void> {
    return awaitStored(this.#api.store, ['configmaps', 'namespaces'], gone);
  }

  has(collection: string, id: string): boolean {
    return this.#api.store.get(collection, id) !== undefined;
  }

  ownersOf(collection: string, id: string): string[] {
    const { metadata }: Loose = JSON.parse(this.#api.store.get(collection, id)!.bytes.toString('utf8'));
    return (metadata.ownerReferences ?? []).map(({ name }: Loose) => name);
  }

  count(collection: string, prefix: string): number {
    return this.#api.store.list(collection, { prefix }).entries.length;
  }

  settle(): Promise<void> {
    return this.#collector.settle();
  }

  /** Asserts that everything except `gone` is unchanged, and that `changed` objects exist with these owners. */
  verify(gone: (id: string) => boolean, changed: Readonly<Record<string, readonly string[]>> = {}): void {
    const now = this.#states();
    for (const [id, state] of this.#before) {
      if (gone(id)) assert.equal(now.has(id), false, `${id} is deleted`);
      else if (!(id in changed)) assert.equal(now.get(id), state, `${id} is unchanged`);
    }
    for (const [id, owners] of Object.entries(changed)) {
      const [collection = '', name = ''] = id.split(' ');
      assert.equal(now.get(id)?.includes('deletionTimestamp'), false, `${id} exists`);
      assert.deepEqual(this.ownersOf(collection, name), owners, `the owners of ${id}`);
    }
  }

  #states(): Map<string, string> {
    const states = new Map<string, string>();
    for (const collection of ['configmaps', 'namespaces']) {
      for (const { id, bytes } of this.#api.store.list(collection).entries) {
        states.set(`${collection} ${id}`, bytes.toString('utf8'));
      }
    }
    return states;
  }
}

const owner = ({ metadata }: Loose, blockOwnerDeletion: boolean): Loose => {
  return { apiVersion: 'v1', kind: 'ConfigMap', name: metadata.name, uid: metadata.uid, blockOwnerDeletion };
};

/** Makes objects that must not change: an owner with its dependent and a single object, in two namespaces. */
async function makeUnrelated(plane: Plane): Promise<void> {
  await plane.makeNamespace('beside');
  for (const namespace of ['default', 'beside']) {
    const unrelated = await plane.make(namespace, 'unrelated');
    await plane.make(namespace, 'dependent', [owner(unrelated, true)]);
    await plane.make(namespace, 'alone', [], [HOLD]);
  }
}

function scenarioOf(
  parts: Pick<CrashScenario<Plane>, 'prepare' | 'act' | 'complete' | 'verify'>,
): CrashScenario<Plane> {
  const before = new Map<string, string>();
  return {
    ...parts,
    start: (store) => Plane.start(store, before),
    async prepare(plane) {
      before.clear();
      await makeUnrelated(plane);
      await parts.prepare(plane);
      await plane.settle();
      plane.rememberStates();
    },
    stop: (plane) => plane.stop(),
  };
}

const tree = scenarioOf({
  async prepare(plane) {
    const root = await plane.make('default', 'root');
    const second = await plane.make('default', 'second');
    const middle = await plane.make('default', 'middle', [owner(root, true)]);
    await plane.make('default', 'leaf', [owner(middle, true)], [HOLD]);
    await plane.make('default', 'leaf-free', [owner(middle, false)]);
    await plane.make('default', 'free', [owner(root, false)]);
    await plane.make('default', 'shared', [owner(root, true), owner(second, true)]);
  },
  act: (plane) => plane.delete('default/configmaps/root', 'Foreground'),
  complete: (plane) =>
    plane.waitUntil(
      () =>
        DELETED.every((name) => !plane.has('configmaps', `default/${name}`)) &&
        plane.ownersOf('configmaps', 'default/shared').length === 1,
    ),
  verify: async (plane) => {
    await plane.settle();
    const gone = new Set(DELETED.map((name) => `configmaps default/${name}`));
    plane.verify((id) => gone.has(id), { 'configmaps default/shared': ['second'] });
  },
});
const DELETED = ['root', 'middle', 'leaf', 'leaf-free', 'free'];

const namespace = scenarioOf({
  async prepare(plane) {
    await plane.makeNamespace('doomed');
    const root = await plane.make('doomed', 'root');
    const middle = await plane.make('doomed', 'middle', [owner(root, true)], [HOLD]);
    await plane.make('doomed', 'leaf', [owner(middle, true)]);
    // This object is already being deleted, and waits for an object with a finalizer.
    const waits = await plane.make('doomed', 'waits');
    await plane.make('doomed', 'blocks', [owner(waits, true)], ['foregroundDeletion']);
    await plane.make('doomed', 'plain', [], [HOLD]);
  },
  async act(plane) {
    await plane.delete('doomed/configmaps/waits', 'Foreground');
    await plane.delete('doomed', 'Background');
  },
  complete: (plane) => plane.waitUntil(() => !plane.has('namespaces', 'doomed')),
  verify: async (plane) => {
    await plane.settle();
    assert.equal(plane.count('configmaps', 'doomed/'), 0);
    plane.verify((id) => id === 'namespaces doomed' || id.startsWith('configmaps doomed/'));
  },
});

const scenarios: Record<string, { scenario: CrashScenario<Plane>; atLeast: number }> = {
  'a foreground delete of a tree': { scenario: tree, atLeast: 9 },
  'a delete of a namespace': { scenario: namespace, atLeast: 12 },
};

for (const [name, { scenario, atLeast }] of Object.entries(scenarios)) {
  test(`${name} completes wherever the process was killed`, async (t) => {
    const points = await forEachCrashPoint(scenario);
    t.diagnostic(`${points} writes`);
    assert.ok(points >= atLeast, `only ${points} crash points`);
  });
}
