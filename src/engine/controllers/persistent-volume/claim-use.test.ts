import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { Informer } from '#client/informer.ts';
import { FakeApi } from '#client/testing/fake-api.ts';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { FakeLink } from '#client/testing/fake-link.ts';
import { ENGINE_PODS } from '#engine/controllers/kinds.ts';
import { ClaimUse } from '#engine/controllers/persistent-volume/claim-use.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '#kube/core-kinds.ts';
import { silentLog } from '#lib/log.ts';

/** An informer of pods that never starts: the cache stays empty, so that every answer comes from lists. */
function claimUse(t: TestContext) {
  const api = new FakeApi();
  const link = new FakeLink(api, [ENGINE_PODS, PERSISTENT_VOLUME_CLAIMS]);
  const clock = new FakeClock();
  const pods = new Informer({ reader: link.client, type: ENGINE_PODS, clock, log: silentLog, random: () => 0.5 });
  const use = new ClaimUse(pods, link.client);
  const meta = (name: string) => ({ namespace: 'default', name });
  return {
    api,
    link,
    addPod: (name: string, claimName: string) =>
      api.create(ENGINE_PODS, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: meta(name),
        spec: { nodeName: 'n1', volumes: [{ name: 'v', persistentVolumeClaim: { claimName } }] },
      }),
    addClaim: (name: string) =>
      api.create(PERSISTENT_VOLUME_CLAIMS, {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: meta(name),
        spec: {},
      }),
    isUsed: (name: string) =>
      use.isUsed(api.get(PERSISTENT_VOLUME_CLAIMS, `default/${name}`) as never, { signal: t.signal }),
  };
}

test('a claim that was in use when another claim was checked is unused once its pod is gone', async (t) => {
  const { api, addPod, addClaim, isUsed } = claimUse(t);
  addClaim('c1');
  addClaim('c2');
  addPod('launcher', 'c1');
  assert.equal(await isUsed('c2'), false);
  assert.equal(await isUsed('c1'), true);
  api.delete(ENGINE_PODS, 'default/launcher');
  assert.equal(await isUsed('c1'), false);
});

test('one list of pods serves all unused claims that are older than the list', async (t) => {
  const { link, addPod, addClaim, isUsed } = claimUse(t);
  for (const name of ['c1', 'c2', 'c3']) addClaim(name);
  addPod('launcher', 'c3');
  assert.equal(await isUsed('c1'), false);
  assert.equal(await isUsed('c2'), false);
  assert.equal(link.requests.length, 1);
  addClaim('c4');
  assert.equal(await isUsed('c4'), false);
  assert.equal(link.requests.length, 2, 'the list was older than the claim');
});
