/**
 * The collector does not delete objects because of kinds that it has not listed yet; and it works with its own account.
 */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import type { Client } from '#client/client.ts';
import { startBareApi, startCollector, type Collector } from '#test/crash/collector.ts';
import { aGadget, gadgetCrd, GADGETS, installCrd, installGadgets } from '#test/support/gadgets.ts';
import { startTestApi, type Loose, type TestApi } from '#test/support/test-api.ts';

const CONFIGMAPS = '/api/v1/namespaces/golden/configmaps';

let api: TestApi;
let collector: Collector | undefined;
/** Lets the delayed lists continue. A collector that waits for one cannot stop. */
let allowLists: () => void = () => {};

beforeEach(async () => {
  api = await startBareApi();
  await api.ok('POST', '/api/v1/namespaces', {
    body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'golden' } },
  });
});
afterEach(async () => {
  allowLists();
  await collector?.stop();
  await api.stop();
});

const owner = ({ apiVersion, kind, metadata: { name, uid } }: Loose, fields: Loose = {}): Loose => ({
  apiVersion,
  kind,
  name,
  uid,
  ...fields,
});

function create(on: TestApi, name: string, owners: Loose[] = []): Promise<Loose> {
  const metadata = { name, ownerReferences: owners };
  return on.ok('POST', CONFIGMAPS, { body: { apiVersion: 'v1', kind: 'ConfigMap', metadata } });
}

/** Creates a gadget that blocks the foreground deletion of its owner and is itself held by a finalizer. */
function blockWithGadget(root: Loose): Promise<Loose> {
  const ownerReferences = [owner(root, { blockOwnerDeletion: true })];
  const metadata = { ownerReferences, finalizers: ['example.org/hold'] };
  return api.ok('POST', GADGETS, { body: aGadget('blocks', { size: 1 }, metadata) });
}

/**
 * Creates garbage and waits for its collection, twice: everything queued before has then been processed, although kinds
 * are missing.
 */
async function collectMarkers(): Promise<void> {
  for (const name of ['marker-a', 'marker-b']) {
    const watch = await api.watch(`${CONFIGMAPS}?watch=1&fieldSelector=metadata.name=${name}`);
    await create(api, name, [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'nobody', uid: 'nobody' }]);
    await watch.awaitEvents(2);
    watch.stop();
  }
}

/** Returns a wrapper of clients that delays lists of gadgets until `allowLists` is called. */
function delayGadgetLists(overrides: (client: Client) => Partial<Client> = () => ({})): (client: Client) => Client {
  const { promise: mayList, resolve } = Promise.withResolvers<void>();
  allowLists = resolve;
  return (client) => ({
    ...client,
    async list(type, options) {
      if (type.plural === 'gadgets') await mayList;
      return client.list(type, options);
    },
    ...overrides(client),
  });
}

const rootExists = async () => (await api.call('GET', `${CONFIGMAPS}/root`)).status === 200;
const deleteRoot = () => api.ok('DELETE', `${CONFIGMAPS}/root`, { body: { propagationPolicy: 'Foreground' } });

/** Allows the lists and asserts that the owner waits for the blocking gadget and is deleted after it. */
async function assertRootWaits(): Promise<void> {
  allowLists();
  await collector!.settle();
  assert.ok(await rootExists());
  assert.ok(
    (await api.ok('GET', `${GADGETS}/blocks`)).metadata.deletionTimestamp,
    'the blocking object is deleted first',
  );
  await api.ok('PATCH', `${GADGETS}/blocks`, { body: { metadata: { finalizers: null } } });
  await collector!.settle();
  assert.equal(await rootExists(), false);
}

test('foreground: an owner waits for a kind that is served but not listed yet', async () => {
  const through = delayGadgetLists();
  collector = await startCollector(api, { through });
  await installCrd(api, gadgetCrd());
  await blockWithGadget(await create(api, 'root'));
  await deleteRoot();
  await collectMarkers();
  assert.ok(await rootExists());
  await assertRootWaits();
});

test('foreground: an owner waits for a kind that is served only since its processing began', async () => {
  const readBegun = Promise.withResolvers<void>();
  const mayReturn = Promise.withResolvers<void>();
  let reads = 0;
  const through = delayGadgetLists((client) => ({
    async get(type, object, options) {
      const found = await client.get(type, object, options);
      if (object.name !== 'root' || reads++ > 0) return found;
      readBegun.resolve();
      await mayReturn.promise;
      return found;
    },
  }));
  collector = await startCollector(api, { through });
  const root = await create(api, 'root');
  await deleteRoot();
  await readBegun.promise;
  await installCrd(api, gadgetCrd());
  await blockWithGadget(root);
  mayReturn.resolve();
  await collectMarkers();
  assert.ok(await rootExists());
  await assertRootWaits();
});

test('with its own account the collector deletes, waits, orphans and removes finalizers, also for custom kinds', async () => {
  const real = await startTestApi();
  await installGadgets(real);
  const exists = async (url: string) => (await real.call('GET', url)).status === 200;
  const remove = (url: string, propagationPolicy: string) => real.ok('DELETE', url, { body: { propagationPolicy } });
  const child = (name: string, root: Loose) =>
    real.ok('POST', GADGETS, { body: aGadget(name, { size: 1 }, { ownerReferences: [owner(root)] }) });

  await child('follows', await create(real, 'background'));
  const waits = await create(real, 'foreground');
  const ownerReferences = [owner(waits, { blockOwnerDeletion: true })];
  const held = { ownerReferences, finalizers: ['example.org/hold'] };
  await real.ok('POST', GADGETS, { body: aGadget('blocks', { size: 1 }, held) });
  await child('stays', await create(real, 'orphan'));
  await real.settle();
  await remove(`${CONFIGMAPS}/background`, 'Background');
  await remove(`${CONFIGMAPS}/foreground`, 'Foreground');
  await remove(`${CONFIGMAPS}/orphan`, 'Orphan');
  await real.settle();
  assert.equal(await exists(`${GADGETS}/follows`), false);
  assert.ok((await real.ok('GET', `${GADGETS}/blocks`)).metadata.deletionTimestamp);
  assert.ok(await exists(`${CONFIGMAPS}/foreground`));
  assert.equal(await exists(`${CONFIGMAPS}/orphan`), false);
  assert.equal((await real.ok('GET', `${GADGETS}/stays`)).metadata.ownerReferences, undefined);
  await real.ok('PATCH', `${GADGETS}/blocks`, { body: { metadata: { finalizers: null } } });
  await real.settle();
  assert.equal(await exists(`${CONFIGMAPS}/foreground`), false);
  await real.stop();
});
