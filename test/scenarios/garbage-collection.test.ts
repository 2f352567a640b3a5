/** Deletion of owners and their dependents through the whole engine: background, foreground, orphan, and races. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startBareApi, startCollector, type Collector } from '#test/crash/collector.ts';
import { fastClock } from '#test/support/crash-points.ts';
import { aGadget, gadgetCrd, GADGETS, installCrd } from '#test/support/gadgets.ts';
import type { Loose, TestApi } from '#test/support/test-api.ts';

let api: TestApi;
let collector: Collector;

before(async () => {
  api = await startBareApi();
  for (const name of ['golden', 'other']) {
    await api.ok('POST', '/api/v1/namespaces', { body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } } });
  }
  collector = await startCollector(api);
});
after(async () => {
  await collector.stop();
  await api.stop();
});

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const CONFIGMAPS = '/api/v1/namespaces/golden/configmaps';
const url = (name: string) => `${CONFIGMAPS}/${name}`;

interface ObjectOptions {
  readonly owners?: readonly Loose[];
  readonly finalizers?: readonly string[];
  readonly in?: string;
}

/** Creates a ConfigMap. The kind does not matter, because ownership is in the metadata. */
function create(
  name: string,
  { owners = [], finalizers, in: collection = CONFIGMAPS }: ObjectOptions = {},
): Promise<Loose> {
  const metadata = { name, ownerReferences: owners, finalizers };
  return api.ok('POST', collection, { body: { apiVersion: 'v1', kind: 'ConfigMap', metadata } });
}

const owner = ({ apiVersion, kind, metadata }: Loose, fields: Loose = {}): Loose => ({
  apiVersion,
  kind,
  name: metadata.name,
  uid: metadata.uid,
  ...fields,
});
const blockingOwner = (object: Loose) => owner(object, { blockOwnerDeletion: true });
const remove = (name: string, propagationPolicy: string) =>
  api.ok('DELETE', url(name), { body: { propagationPolicy } });
const release = (name: string) => api.ok('PATCH', url(name), { body: { metadata: { finalizers: null } } });
const get = (name: string) => api.ok('GET', url(name));

/** Returns which of these objects still exist. */
async function remainingOf(...names: readonly string[]): Promise<string[]> {
  await collector.settle();
  const answers = await Promise.all(names.map((name) => api.call('GET', url(name))));
  return names.filter((_, i) => answers[i]!.status === 200);
}

const ownerNames = ({ metadata }: Loose): string[] => (metadata.ownerReferences ?? []).map(({ name }: Loose) => name);

test('background: the owner is deleted at once, and all dependents follow', async () => {
  const root = await create('bg-root');
  const middle = await create('bg-middle', { owners: [owner(root)] });
  await create('bg-leaf', { owners: [owner(middle)] });
  await create('bg-stranger');
  await remove('bg-root', 'Background');
  assert.deepEqual(await remainingOf('bg-root', 'bg-middle', 'bg-leaf', 'bg-stranger'), ['bg-stranger']);
});

test('foreground: blocking dependents are deleted first, from the leaves up', async () => {
  const watch = await api.watch(`${CONFIGMAPS}?watch=1`);
  const root = await create('fg-root');
  const middle = await create('fg-middle', { owners: [blockingOwner(root)] });
  await create('fg-leaf', { owners: [blockingOwner(middle)] });
  const answer = await remove('fg-root', 'Foreground');
  assert.deepEqual(answer.metadata.finalizers, ['foregroundDeletion']);
  assert.deepEqual(await remainingOf('fg-root', 'fg-middle', 'fg-leaf'), []);
  watch.stop();
  const deleted = watch.events.filter(({ type }) => type === 'DELETED').map(({ object }) => object.metadata.name);
  assert.deepEqual(deleted, ['fg-leaf', 'fg-middle', 'fg-root']);
});

test('foreground: an owner waits only for blocking dependents', async () => {
  const root = await create('wait-root');
  await create('wait-blocks', { owners: [blockingOwner(root)], finalizers: ['example.org/hold'] });
  await create('wait-not', { owners: [owner(root)], finalizers: ['example.org/hold'] });
  await remove('wait-root', 'Foreground');
  assert.deepEqual(await remainingOf('wait-root', 'wait-blocks', 'wait-not'), ['wait-root', 'wait-blocks', 'wait-not']);
  for (const name of ['wait-blocks', 'wait-not']) assert.ok((await get(name)).metadata.deletionTimestamp, name);
  await release('wait-blocks');
  assert.deepEqual(await remainingOf('wait-root', 'wait-blocks', 'wait-not'), ['wait-not']);
  await release('wait-not');
});

test('orphan: dependents stay and lose only the reference to their owner', async () => {
  const root = await create('orphan-root');
  const other = await create('orphan-other');
  await create('orphan-a', { owners: [blockingOwner(root)] });
  await create('orphan-b', { owners: [owner(other), owner(root)] });
  // More objects than one batch changes.
  const crowd = Array.from({ length: 130 }, (_, i) => `orphan-many-${i}`);
  await Promise.all(crowd.map((name) => create(name, { owners: [owner(root)] })));
  await remove('orphan-root', 'Orphan');
  assert.deepEqual(await remainingOf('orphan-root', 'orphan-a', 'orphan-b', ...crowd), [
    'orphan-a',
    'orphan-b',
    ...crowd,
  ]);
  assert.deepEqual(ownerNames(await get('orphan-a')), []);
  assert.deepEqual(ownerNames(await get('orphan-b')), ['orphan-other']);
  await Promise.all(crowd.map((name) => remove(name, 'Background')));
});

test('orphan: a dependent that no watch has delivered yet is kept, too', async () => {
  const own = await startBareApi();
  const configMaps = '/api/v1/namespaces/default/configmaps';
  const root = await own.ok('POST', configMaps, {
    body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'root' } },
  });
  let releaseWatch: () => void = () => {};
  const shown = new Promise<void>((resolve) => (releaseWatch = resolve));
  const late = await startCollector(own, {
    // The collector waits, for a while, until its watch delivers its own write.
    clock: fastClock(100),
    through: (client) => ({
      ...client,
      async *watch(type, options) {
        for await (const event of client.watch(type, options)) {
          if (type.plural === 'secrets') await shown;
          yield event;
        }
      },
    }),
  });
  const metadata = { name: 'unseen', ownerReferences: [owner(root)] };
  const secrets = '/api/v1/namespaces/default/secrets';
  await own.ok('POST', secrets, { body: { apiVersion: 'v1', kind: 'Secret', metadata } });
  const watch = await own.watch(`${configMaps}?watch=1&fieldSelector=metadata.name=root`);
  await own.ok('DELETE', `${configMaps}/root`, { body: { propagationPolicy: 'Orphan' } });
  for (let seen = 1; (await watch.awaitEvents(seen))[seen - 1]!.type !== 'DELETED'; seen++);
  assert.deepEqual(ownerNames(await own.ok('GET', `${secrets}/unseen`)), []);
  releaseWatch();
  await late.settle();
  await own.ok('GET', `${secrets}/unseen`);
  watch.stop();
  await late.stop();
  await own.stop();
});

test('dangling: objects are deleted whose owner never existed, or was created again with another uid', async () => {
  const first = await create('again');
  await remove('again', 'Background');
  const second = await create('again');
  await create('of-first', { owners: [owner(first)] });
  await create('of-second', { owners: [owner(second)] });
  await create('of-nobody', { owners: [{ apiVersion: 'v1', kind: 'Secret', name: 'nobody', uid: 'made-up' }] });
  assert.deepEqual(await remainingOf('again', 'of-first', 'of-second', 'of-nobody'), ['again', 'of-second']);
});

test('several owners: the object stays until the last owner is deleted', async () => {
  const a = await create('pair-a');
  const b = await create('pair-b');
  await create('pair-child', { owners: [owner(a), owner(b)] });
  await remove('pair-a', 'Background');
  assert.deepEqual(await remainingOf('pair-child'), ['pair-child']);
  assert.deepEqual(ownerNames(await get('pair-child')), ['pair-b']);
  await remove('pair-b', 'Background');
  assert.deepEqual(await remainingOf('pair-child'), []);
});

test('several owners: an object that has another owner does not block a foreground deletion', async () => {
  const a = await create('shared-a');
  const b = await create('shared-b');
  await create('shared-child', { owners: [blockingOwner(a), blockingOwner(b)] });
  await remove('shared-a', 'Foreground');
  assert.deepEqual(await remainingOf('shared-a', 'shared-b', 'shared-child'), ['shared-b', 'shared-child']);
  assert.deepEqual(ownerNames(await get('shared-child')), ['shared-b']);
});

test('a reference that is changed to a deleted owner is noticed', async () => {
  const deletedOwner = await create('moved-gone');
  const stays = await create('moved-stays');
  await create('moved-child', { owners: [owner(stays)] });
  await remove('moved-gone', 'Background');
  await api.ok('PATCH', url('moved-child'), { body: { metadata: { ownerReferences: [owner(deletedOwner)] } } });
  assert.deepEqual(await remainingOf('moved-stays', 'moved-child'), ['moved-stays']);
});

async function createCycle(prefix: string): Promise<string[]> {
  const a = await create(`${prefix}-a`);
  const b = await create(`${prefix}-b`, { owners: [blockingOwner(a)] });
  const c = await create(`${prefix}-c`, { owners: [blockingOwner(b)] });
  await api.ok('PATCH', url(`${prefix}-a`), { body: { metadata: { ownerReferences: [blockingOwner(c)] } } });
  return [`${prefix}-a`, `${prefix}-b`, `${prefix}-c`];
}

test('a cycle of owners stays until one of them is deleted', async () => {
  const names = await createCycle('ring');
  assert.deepEqual(await remainingOf(...names), names);
});

for (const policy of ['Background', 'Foreground']) {
  test(`a cycle of owners, one deleted in the ${policy.toLowerCase()}: all are deleted`, async () => {
    const names = await createCycle(`one-${policy.toLowerCase()}`);
    await remove(names[0]!, policy);
    assert.deepEqual(await remainingOf(...names), []);
  });
}

test('a cycle of owners, all deleted in the foreground at the same time: all are deleted', async () => {
  const names = await createCycle('all');
  await Promise.all(names.map((name) => remove(name, 'Foreground')));
  assert.deepEqual(await remainingOf(...names), []);
});

test('owners in another namespace do not count, and an Event reports them', async () => {
  const far = await create('far', { in: '/api/v1/namespaces/other/configmaps' });
  const child = await create('of-far', { owners: [owner(far)] });
  assert.deepEqual(await remainingOf('of-far'), []);
  const note = collector.notes.find(({ about }) => about.metadata.uid === child.metadata.uid);
  assert.deepEqual(
    [note?.type, note?.reason, note?.message],
    [
      'Warning',
      'OwnerRefInvalidNamespace',
      `ownerRef [v1/ConfigMap, namespace: golden, name: far, uid: ${far.metadata.uid}] does not exist in namespace "golden"`,
    ],
  );
});

const CLASSES = '/apis/scheduling.k8s.io/v1/priorityclasses';
const createClass = (name: string, owners: readonly Loose[] = []): Promise<Loose> =>
  api.ok('POST', CLASSES, {
    body: {
      apiVersion: 'scheduling.k8s.io/v1',
      kind: 'PriorityClass',
      metadata: { name, ownerReferences: owners },
      value: 1,
    },
  });

test('a cluster-scoped object is never collected because of a namespaced owner', async () => {
  const bound = await create('bound');
  const child = await createClass('of-bound', [owner(bound)]);
  await remove('bound', 'Background');
  await collector.settle();
  await api.ok('GET', `${CLASSES}/of-bound`);
  const note = collector.notes.find(({ about }) => about.metadata.uid === child.metadata.uid);
  assert.equal(
    note?.message,
    `ownerRef [v1/ConfigMap, namespace: , name: bound, uid: ${bound.metadata.uid}] does not exist in namespace ""`,
  );
});

test('a cluster-scoped owner can own objects in all namespaces', async () => {
  const wide = await createClass('wide');
  await create('of-wide', { owners: [blockingOwner(wide)] });
  await createClass('wide-too', [owner(wide)]);
  assert.deepEqual(await remainingOf('of-wide'), ['of-wide']);
  await api.ok('DELETE', `${CLASSES}/wide`, { body: { propagationPolicy: 'Foreground' } });
  assert.deepEqual(await remainingOf('of-wide'), []);
  const codes = await Promise.all(['wide', 'wide-too'].map((name) => api.call('GET', `${CLASSES}/${name}`)));
  assert.deepEqual(
    codes.map(({ status }) => status),
    [404, 404],
  );
});

test('unserved owners are left alone until their kind is served; custom kinds own and are owned', async () => {
  await create('of-gadget', { owners: [{ apiVersion: 'golden.local/v1', kind: 'Gadget', name: 'no', uid: 'no' }] });
  await create('of-robot', { owners: [{ apiVersion: 'robots.local/v1', kind: 'Robot', name: 'no', uid: 'no' }] });
  assert.deepEqual(await remainingOf('of-gadget', 'of-robot'), ['of-gadget', 'of-robot']);
  await installCrd(api, gadgetCrd());
  assert.deepEqual(await remainingOf('of-gadget', 'of-robot'), ['of-robot']);

  const root = await api.ok('POST', GADGETS, { body: aGadget('root') });
  await api.ok('POST', GADGETS, { body: aGadget('child', undefined, { ownerReferences: [blockingOwner(root)] }) });
  await create('of-root', { owners: [blockingOwner(root)] });
  await api.ok('DELETE', `${GADGETS}/root`, { body: { propagationPolicy: 'Foreground' } });
  assert.deepEqual(await remainingOf('of-root'), []);
  assert.deepEqual((await api.ok('GET', GADGETS)).items, []);

  const last = await api.ok('POST', GADGETS, { body: aGadget('last') });
  await create('of-last', { owners: [owner(last)] });
  const watch = await api.watch(`${CONFIGMAPS}?watch=1&fieldSelector=metadata.name=of-last`);
  const kinds = await api.watch(`${CRDS}?watch=1&fieldSelector=metadata.name=gadgets.golden.local`);
  await api.ok('DELETE', `${CRDS}/gadgets.golden.local`);
  // Deleting the kind deletes the object, and then what it owned.
  assert.equal((await watch.awaitEvents(2))[1]!.type, 'DELETED');
  watch.stop();
  for (let seen = 1; (await kinds.awaitEvents(seen))[seen - 1]!.type !== 'DELETED'; seen++);
  kinds.stop();
});

test('dependents of a kind are deleted also if the kind disappears before its objects could be read', async () => {
  await collector.stop();
  let allowRead: () => void = () => {};
  const mayRead = new Promise<void>((resolve) => (allowRead = resolve));
  let held = false;
  collector = await startCollector(api, {
    through: (client) => ({
      ...client,
      async get(type, object, options) {
        if (object.name === 'of-late') {
          held = true;
          await mayRead;
        }
        return client.get(type, object, options);
      },
    }),
  });
  await installCrd(api, gadgetCrd());
  const late = await api.ok('POST', GADGETS, { body: aGadget('late') });
  await collector.settle();
  await create('of-late', { owners: [owner(late)] });
  const watch = await api.watch(`${CRDS}?watch=1&fieldSelector=metadata.name=gadgets.golden.local`);
  await api.ok('DELETE', `${CRDS}/gadgets.golden.local`);
  for (let seen = 1; (await watch.awaitEvents(seen))[seen - 1]!.type !== 'DELETED'; seen++);
  watch.stop();
  allowRead();
  assert.deepEqual(await remainingOf('of-late'), []);
  assert.ok(held, 'it was processed before the kind was deleted');
});

test('an owner in foreground deletion stays until every kind has been listed', async () => {
  const root = await create('unlisted-root');
  const metadata = { name: 'unlisted', ownerReferences: [blockingOwner(root)], finalizers: ['example.org/hold'] };
  const secrets = '/api/v1/namespaces/golden/secrets';
  await api.ok('POST', secrets, { body: { apiVersion: 'v1', kind: 'Secret', metadata } });
  await collector.stop();
  await remove('unlisted-root', 'Foreground');
  collector = await startCollector(api, {
    through: (client) => ({
      ...client,
      async list(type, options) {
        // Long enough for a collector that does not wait to delete the owner.
        for (let turn = 0; type.plural === 'secrets' && turn < 50; turn++) await new Promise(setImmediate);
        return client.list(type, options);
      },
    }),
  });
  assert.deepEqual(await remainingOf('unlisted-root'), ['unlisted-root']);
  await api.ok('PATCH', `${secrets}/unlisted`, { body: { metadata: { finalizers: null } } });
  assert.deepEqual(await remainingOf('unlisted-root'), []);
});

interface Race {
  /** Runs between the collector's read of the object and its deletion. */
  readonly meanwhile: (object: Loose, friend: Loose) => Promise<unknown>;
  readonly survives: (object: Loose, before: Loose) => boolean;
}

const races: Record<string, Race> = {
  'an object that was created again meanwhile under the same name is not deleted': {
    async meanwhile() {
      await remove('raced', 'Background');
      await create('raced');
    },
    survives: (object, seen) => object.metadata.uid !== seen.metadata.uid,
  },
  'an object that gets a new owner meanwhile is not deleted': {
    meanwhile: (_, friend) =>
      api.ok('PATCH', url('raced'), { body: { metadata: { ownerReferences: [owner(friend)] } } }),
    survives: (object, seen) => object.metadata.uid === seen.metadata.uid,
  },
};

for (const [name, { meanwhile, survives }] of Object.entries(races)) {
  test(name, async () => {
    await collector.stop();
    const friend = await create('raced-friend');
    let waiting: (() => Promise<unknown>) | undefined;
    collector = await startCollector(api, {
      through: (client) => ({
        ...client,
        async delete(type, object, options) {
          const first = object.name === 'raced' ? waiting : undefined;
          if (first !== undefined) {
            waiting = undefined;
            await first();
          }
          return client.delete(type, object, options);
        },
      }),
    });
    const raced = await create('raced', { owners: [{ apiVersion: 'v1', kind: 'Secret', name: 'no', uid: 'no' }] });
    waiting = () => meanwhile(raced, friend);
    assert.deepEqual(await remainingOf('raced'), ['raced']);
    assert.equal(waiting, undefined, 'the collector has tried');
    assert.ok(survives(await get('raced'), raced));
    await Promise.all(['raced', 'raced-friend'].map((object) => remove(object, 'Background')));
  });
}

test('garbage from a time without a collector is found by the next one', async () => {
  const root = await create('later-root');
  await create('later-child', { owners: [owner(root)] });
  const waits = await create('later-waits');
  await create('later-blocks', { owners: [blockingOwner(waits)] });
  const lets = await create('later-lets');
  await create('later-let', { owners: [owner(lets)] });
  await collector.stop();
  await remove('later-root', 'Background');
  await remove('later-waits', 'Foreground');
  await remove('later-lets', 'Orphan');
  collector = await startCollector(api);
  const names = ['later-root', 'later-child', 'later-waits', 'later-blocks', 'later-lets', 'later-let'];
  assert.deepEqual(await remainingOf(...names), ['later-let']);
});
