/**
 * A long list in a version other than the stored one is converted object by object, so that other requests are served
 * meanwhile.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { aGadget, gadgetCrd, GADGETS, installGadgets } from '#test/support/gadgets.ts';
import { startTestApi, type TestApi } from '#test/support/test-api.ts';

const COUNT = 350;
let api: TestApi;

before(async () => {
  api = await startTestApi();
  const crd = gadgetCrd();
  crd.spec.versions.push({ ...crd.spec.versions[0], name: 'v2', storage: false });
  await installGadgets(api, crd);
  for (let i = 0; i < COUNT; i++) await api.ok('POST', GADGETS, { body: aGadget(`g${i}`) });
});
after(() => api.stop());

test('other requests are served between the objects of a list', async () => {
  let turns = 0;
  let done = false;
  const turn = () => {
    turns++;
    if (!done) setImmediate(turn);
  };
  const listing = api.ok('GET', GADGETS.replace('/v1/', '/v2/'));
  setImmediate(turn);
  const { items } = await listing;
  done = true;
  assert.equal(items.length, COUNT);
  assert.ok(turns >= 3, `there were only ${turns} turns`);
});
