/** What the collector does not know yet must not cost anybody an object; and the collector under its own account. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import type { Client } from '#client/client.ts';
import { startBareApi, startCollector, type Collector } from '#test/crash/collector.ts';
import { aGadget, gadgetCrd, GADGETS, installCrd, installGadgets } from '#test/support/gadgets.ts';
import { startTestApi, type Loose, type TestApi } from '#test/support/test-api.ts';

const CONFIGMAPS = '/api/v1/namespaces/golden/configmaps';

let api: TestApi;
let collector: Collector | undefined;
/** Who waits for that keeps the collector from stopping. */
let list: () => void = () => {};

beforeEach(async () => {
  api = await startBareApi();
  await api.ok('POST', '/api/v1/namespaces', {
    body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'golden' } },
  });
});
afterEach(async () => {
  list();
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

function make(on: TestApi, name: string, owners: Loose[] = []): Promise<Loose> {
  const metadata = { name, ownerReferences: owners };
  return on.ok('POST', CONFIGMAPS, { body: { apiVersion: 'v1', kind: 'ConfigMap', metadata } });
}

/** A gadget that holds up the foreground deletion of its owner, and that a finalizer holds itself. */
function blockWithGadget(root: Loose): Promise<Loose> {
  const ownerReferences = [owner(root, { blockOwnerDeletion: true })];
  const metadata = { ownerReferences, finalizers: ['example.org/hold'] };
  return api.ok('POST', GADGETS, { body: aGadget('blocks', { size: 1 }, metadata) });
}

/** Garbage is made and collected, twice: who was to be looked at before has been, although kinds are still missing. */
async function collectMarkers(): Promise<void> {
  for (const name of ['marker-a', 'marker-b']) {
    const watch = await api.watch(`${CONFIGMAPS}?watch=1&fieldSelector=metadata.name=${name}`);
    await make(api, name, [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'nobody', uid: 'nobody' }]);
    await watch.got(2);
    watch.stop();
  }
}

/** The gadgets cannot be listed before `list` is called. */
function withoutGadgets(overrides: (client: Client) => Partial<Client> = () => ({})): (client: Client) => Client {
  const { promise: mayList, resolve } = Promise.withResolvers<void>();
  list = resolve;
  return (client) => ({
    ...client,
    async list(type, options) {
      if (type.plural === 'gadgets') await mayList;
      return client.list(type, options);
    },
    ...overrides(client),
  });
}

const rootIsThere = async () => (await api.call('GET', `${CONFIGMAPS}/root`)).status === 200;
const deleteRoot = () => api.ok('DELETE', `${CONFIGMAPS}/root`, { body: { propagationPolicy: 'Foreground' } });

/** Once the gadgets are listed, the owner waits for the one that blocks it, and goes after it. */
async function rootWaitsForGadget(): Promise<void> {
  list();
  await collector!.settle();
  assert.ok(await rootIsThere());
  assert.ok((await api.ok('GET', `${GADGETS}/blocks`)).metadata.deletionTimestamp, 'what blocks goes first');
  await api.ok('PATCH', `${GADGETS}/blocks`, { body: { metadata: { finalizers: null } } });
  await collector!.settle();
  assert.equal(await rootIsThere(), false);
}

test('foreground: an owner waits for a kind that is served and not listed yet', async () => {
  const through = withoutGadgets();
  collector = await startCollector(api, { through });
  await installCrd(api, gadgetCrd());
  await blockWithGadget(await make(api, 'root'));
  await deleteRoot();
  await collectMarkers();
  assert.ok(await rootIsThere());
  await rootWaitsForGadget();
});

test('foreground: an owner waits for a kind that is served only since the look at it began', async () => {
  const looking = Promise.withResolvers<void>();
  const mayLook = Promise.withResolvers<void>();
  let looks = 0;
  const through = withoutGadgets((client) => ({
    async get(type, object, options) {
      const found = await client.get(type, object, options);
      if (object.name !== 'root' || looks++ > 0) return found;
      looking.resolve();
      await mayLook.promise;
      return found;
    },
  }));
  collector = await startCollector(api, { through });
  const root = await make(api, 'root');
  await deleteRoot();
  await looking.promise;
  await installCrd(api, gadgetCrd());
  await blockWithGadget(root);
  mayLook.resolve();
  await collectMarkers();
  assert.ok(await rootIsThere());
  await rootWaitsForGadget();
});

test('under its own account the collector deletes, waits, orphans and lets go, custom kinds too', async () => {
  const real = await startTestApi();
  await installGadgets(real);
  const there = async (url: string) => (await real.call('GET', url)).status === 200;
  const remove = (url: string, propagationPolicy: string) => real.ok('DELETE', url, { body: { propagationPolicy } });
  const child = (name: string, root: Loose) =>
    real.ok('POST', GADGETS, { body: aGadget(name, { size: 1 }, { ownerReferences: [owner(root)] }) });

  await child('follows', await make(real, 'background'));
  const waits = await make(real, 'foreground');
  const ownerReferences = [owner(waits, { blockOwnerDeletion: true })];
  const held = { ownerReferences, finalizers: ['example.org/hold'] };
  await real.ok('POST', GADGETS, { body: aGadget('blocks', { size: 1 }, held) });
  await child('stays', await make(real, 'orphan'));
  await real.settle();
  await remove(`${CONFIGMAPS}/background`, 'Background');
  await remove(`${CONFIGMAPS}/foreground`, 'Foreground');
  await remove(`${CONFIGMAPS}/orphan`, 'Orphan');
  await real.settle();
  assert.equal(await there(`${GADGETS}/follows`), false);
  assert.ok((await real.ok('GET', `${GADGETS}/blocks`)).metadata.deletionTimestamp);
  assert.ok(await there(`${CONFIGMAPS}/foreground`));
  assert.equal(await there(`${CONFIGMAPS}/orphan`), false);
  assert.equal((await real.ok('GET', `${GADGETS}/stays`)).metadata.ownerReferences, undefined);
  await real.ok('PATCH', `${GADGETS}/blocks`, { body: { metadata: { finalizers: null } } });
  await real.settle();
  assert.equal(await there(`${CONFIGMAPS}/foreground`), false);
  await real.stop();
});
