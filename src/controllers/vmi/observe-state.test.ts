import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KUBEVIRTS } from '#api/kubevirt/kind.ts';
import { stateAnnotationOf, STATE_LABEL, STATE_VOLUME } from '#api/persistent-state.ts';
import { STORAGE_PROFILES, type StorageProfile } from '#api/storage-profile.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import type { VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { FakeApi } from '#client/testing/fake-api.ts';
import { FakeClock } from '#client/testing/fake-clock.ts';
import { FakeLink } from '#client/testing/fake-link.ts';
import { stateObserver } from '#controllers/vmi/observe-state.ts';
import { aClaim, aPod, aVmi } from '#controllers/vmi/vmi-world.fixture.ts';
import {
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  STORAGE_CLASSES,
  type PersistentVolumeClaim,
  type Pod,
  type StorageClass,
} from '#kube/core-kinds.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';
import { silentLog } from '#lib/log.ts';
import { SharedInformers } from '#runtime/shared-informers.ts';

const signal = new AbortController().signal;
const CACHED = [VIRTUAL_MACHINE_INSTANCES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES, KUBEVIRTS];
const LOCAL: StorageClass = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: 'local', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
  provisioner: 'example.com/local',
  volumeBindingMode: 'WaitForFirstConsumer',
};

const keeper = (status?: VmiStatus) =>
  aVmi({ spec: { domain: { devices: { tpm: { persistent: true } } } }, ...(status && { status }) });
const marked = (name: string, spec: Partial<PersistentVolumeClaim['spec']> = {}) =>
  aClaim(name, { metadata: { labels: { [STATE_LABEL]: 'db' } }, spec: { storageClassName: 'local', ...spec } });
const podWith = (claimName: string): Stored<Pod> => {
  const pod = aPod();
  return { ...pod, spec: { ...pod.spec, volumes: [{ name: 'vm-state', persistentVolumeClaim: { claimName } }] } };
};

/** Caches show what is there before, and nothing of what comes later. */
async function observer(before: readonly PersistentVolumeClaim[], { profiles = true, classes = [LOCAL] } = {}) {
  const api = new FakeApi();
  for (const one of classes) api.put(STORAGE_CLASSES, one);
  for (const claim of before) api.put(PERSISTENT_VOLUME_CLAIMS, claim);
  const link = new FakeLink(api, profiles ? [...CACHED, STORAGE_PROFILES] : CACHED);
  const following = new AbortController();
  const reader = link.client;
  const options = { reader, clock: new FakeClock(), log: silentLog, signal: following.signal };
  const informers = new SharedInformers(options);
  const states = stateObserver({ client: link.client, informer: (type) => informers.of(type) });
  await informers.synced();
  following.abort();
  await informers.stopped();
  return { api, states };
}

const nameOf = async (seen: ReturnType<ReturnType<typeof stateObserver>['of']>) => {
  const state = await seen;
  return state?.is === 'there' ? state.claim.metadata.name : state?.is;
};

test('an instance without persistent state has none', async () => {
  const { states } = await observer([marked('kept')]);
  assert.equal(await states.of(aVmi(), undefined, { signal }), undefined);
});

test('a claim that the cache shows is taken, with how its class binds it', async () => {
  const { states } = await observer([marked('kept')]);
  const state = await states.of(keeper(), undefined, { signal });
  assert.ok(state?.is === 'there');
  assert.deepEqual([state.claim.metadata.name, state.waitsForConsumer], ['kept', true]);
});

for (const [name, claim] of Object.entries({
  'its label': marked('late'),
  'its annotation': aClaim('late', { metadata: { annotations: { [stateAnnotationOf('db')]: 'true' } } }),
  'its old name': aClaim('persistent-state-for-db'),
})) {
  test(`a claim that only the server knows is found by ${name} before another is made`, async () => {
    const { api, states } = await observer([]);
    api.put(PERSISTENT_VOLUME_CLAIMS, claim);
    assert.equal(await nameOf(states.of(keeper(), undefined, { signal })), claim.metadata.name);
  });
}

const OLD_VM = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'db', uid: 'old', controller: true };
const foreign = (metadata: ObjectMeta) => aClaim('taken', { metadata: { ...metadata, ownerReferences: [OLD_VM] } });

for (const [name, claim] of Object.entries({
  'its label': foreign({ labels: { [STATE_LABEL]: 'db' } }),
  'its annotation': foreign({ annotations: { [stateAnnotationOf('db')]: 'true' } }),
})) {
  for (const seenBy of ['cache', 'server'] as const) {
    test(`a claim of somebody else that ${name} marks, seen by the ${seenBy}, keeps the guest from starting`, async () => {
      const { api, states } = await observer(seenBy === 'cache' ? [claim] : []);
      if (seenBy === 'server') api.put(PERSISTENT_VOLUME_CLAIMS, claim);
      const state = await states.of(keeper(), undefined, { signal });
      assert.match(
        state?.is === 'disputed' ? state.problem : '',
        /^Cannot start .*"taken" is marked .*"db" of another uid/,
      );
    });
  }
}

test('a claim of somebody else is no obstacle to a VM that has state of its own', async () => {
  const { states } = await observer([marked('kept'), foreign({ labels: { [STATE_LABEL]: 'db' } })]);
  assert.equal(await nameOf(states.of(keeper(), undefined, { signal })), 'kept');
});

test('the profile of the class is asked for when a claim is to be made, and may be no kind at all', async () => {
  const aProfile: StorageProfile = {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'StorageProfile',
    metadata: { name: 'local' },
    status: { claimPropertySets: [{ accessModes: ['ReadWriteMany'], volumeMode: 'Block' }] },
  };
  for (const [profiles, mode] of [
    [true, 'Block'],
    [false, 'Filesystem'],
  ] as const) {
    const { api, states } = await observer([], { profiles });
    if (profiles) api.put(STORAGE_PROFILES, aProfile);
    const state = await states.of(keeper(), undefined, { signal });
    assert.equal(state?.is === 'wanted' ? state.storage.volumeMode : state?.is, mode);
  }
});

test('without a class it is impossible', async () => {
  const { states } = await observer([], { classes: [] });
  const state = await states.of(keeper(), undefined, { signal });
  assert.match(state?.is === 'impossible' ? state.problem : '', /^no default storage class found/);
});

test('once there is a pod, its claim is the one that counts', async () => {
  const { states } = await observer([marked('kept'), marked('mine')]);
  assert.equal(await nameOf(states.of(keeper(), podWith('mine'), { signal })), 'mine');
  assert.equal(await nameOf(states.of(keeper(), podWith('gone'), { signal })), undefined);
  assert.equal(await nameOf(states.of(keeper(), aPod(), { signal })), undefined);
});

test('what has ended, or lost its pod, tells the claim that it had, and asks for none', async () => {
  const { states } = await observer([marked('kept'), marked('mine')]);
  const volumeStatus = [{ name: STATE_VOLUME, persistentVolumeClaimInfo: { claimName: 'mine' } }];
  assert.equal(await nameOf(states.of(keeper({ phase: 'Failed', volumeStatus }), undefined, { signal })), 'mine');
  assert.equal(await nameOf(states.of(keeper({ phase: 'Scheduling' }), undefined, { signal })), undefined);
});
