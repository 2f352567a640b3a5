import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KUBEVIRTS } from '#api/kubevirt/kind.ts';
import { stateAnnotationOf, STATE_LABEL, STATE_VOLUME } from '#api/storage/persistent-state.ts';
import { STORAGE_PROFILES, type StorageProfile } from '#api/storage/storage-profile.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import type { VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { FakeApi } from '#client/testing/fake-api.ts';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { FakeLink } from '#client/testing/fake-link.ts';
import { createStateObserver } from '#controllers/vmi/observe-state.ts';
import { aClaim, aPod, aVmi } from '#controllers/vmi/testing/vmi-world.ts';
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
const CACHED = [
  VIRTUAL_MACHINES,
  VIRTUAL_MACHINE_INSTANCES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  STORAGE_CLASSES,
  KUBEVIRTS,
];
const LOCAL: StorageClass = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: 'local', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
  provisioner: 'example.com/local',
  volumeBindingMode: 'WaitForFirstConsumer',
};

const keeper = (status?: VmiStatus) =>
  aVmi({ spec: { domain: { devices: { tpm: { persistent: true } } } }, ...(status && { status }) });
const aMarkedClaim = (name: string, spec: Partial<PersistentVolumeClaim['spec']> = {}) =>
  aClaim(name, { metadata: { labels: { [STATE_LABEL]: 'db' } }, spec: { storageClassName: 'local', ...spec } });
const podWith = (claimName: string): Stored<Pod> => {
  const pod = aPod();
  return { ...pod, spec: { ...pod.spec, volumes: [{ name: 'vm-state', persistentVolumeClaim: { claimName } }] } };
};

/** Starts an observer whose caches show the initial objects and none that are created later. */
async function observer(before: readonly PersistentVolumeClaim[], { profiles = true, classes = [LOCAL] } = {}) {
  const api = new FakeApi();
  for (const one of classes) api.put(STORAGE_CLASSES, one);
  for (const claim of before) api.put(PERSISTENT_VOLUME_CLAIMS, claim);
  const link = new FakeLink(api, profiles ? [...CACHED, STORAGE_PROFILES] : CACHED);
  const following = new AbortController();
  const reader = link.client;
  const options = { reader, clock: new FakeClock(), log: silentLog, signal: following.signal };
  const informers = new SharedInformers(options);
  const states = createStateObserver({ client: link.client, informer: (type) => informers.of(type) });
  await informers.waitForSync();
  following.abort();
  await informers.stopped();
  return { api, states };
}

const nameOf = async (seen: ReturnType<ReturnType<typeof createStateObserver>['observe']>) => {
  const state = await seen;
  return state?.kind === 'exists' ? state.claim.metadata.name : state?.kind;
};

test('an instance without persistent state needs no claim', async () => {
  const { states } = await observer([aMarkedClaim('kept')]);
  assert.equal(await states.observe(aVmi(), undefined, { signal }), undefined);
});

test('a cached claim is used, with the binding mode of its class', async () => {
  const { states } = await observer([aMarkedClaim('kept')]);
  const state = await states.observe(keeper(), undefined, { signal });
  assert.ok(state?.kind === 'exists');
  assert.deepEqual([state.claim.metadata.name, state.waitsForConsumer], ['kept', true]);
});

for (const [name, claim] of Object.entries({
  'its label': aMarkedClaim('late'),
  'its annotation': aClaim('late', { metadata: { annotations: { [stateAnnotationOf('db')]: 'true' } } }),
  'its old name': aClaim('persistent-state-for-db'),
})) {
  test(`a claim that only the server has is found by ${name} before another is created`, async () => {
    const { api, states } = await observer([]);
    api.put(PERSISTENT_VOLUME_CLAIMS, claim);
    assert.equal(await nameOf(states.observe(keeper(), undefined, { signal })), claim.metadata.name);
  });
}

const OLD_VM = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'db', uid: 'old', controller: true };
const foreign = (metadata: ObjectMeta) => aClaim('taken', { metadata: { ...metadata, ownerReferences: [OLD_VM] } });

for (const [name, claim] of Object.entries({
  'its label': foreign({ labels: { [STATE_LABEL]: 'db' } }),
  'its annotation': foreign({ annotations: { [stateAnnotationOf('db')]: 'true' } }),
})) {
  for (const seenBy of ['cache', 'server'] as const) {
    test(`a claim of another owner with ${name}, seen by the ${seenBy}, prevents a start`, async () => {
      const { api, states } = await observer(seenBy === 'cache' ? [claim] : []);
      if (seenBy === 'server') api.put(PERSISTENT_VOLUME_CLAIMS, claim);
      const state = await states.observe(keeper(), undefined, { signal });
      assert.match(
        state?.kind === 'disputed' ? state.problem : '',
        /^Cannot start .*"taken" is marked .*"db" of another uid/,
      );
    });
  }
}

test('a claim of another owner does not matter if the VM has its own state claim', async () => {
  const { states } = await observer([aMarkedClaim('kept'), foreign({ labels: { [STATE_LABEL]: 'db' } })]);
  assert.equal(await nameOf(states.observe(keeper(), undefined, { signal })), 'kept');
});

test('the profile of the class is read when a claim is to be created, and its kind may not be served', async () => {
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
    const state = await states.observe(keeper(), undefined, { signal });
    assert.equal(state?.kind === 'wanted' ? state.storage.volumeMode : state?.kind, mode);
  }
});

test('no state claim is possible without a storage class', async () => {
  const { states } = await observer([], { classes: [] });
  const state = await states.observe(keeper(), undefined, { signal });
  assert.match(state?.kind === 'impossible' ? state.problem : '', /^no default storage class found/);
});

test('the claim that the pod names counts', async () => {
  const { states } = await observer([aMarkedClaim('kept'), aMarkedClaim('mine')]);
  assert.equal(await nameOf(states.observe(keeper(), podWith('mine'), { signal })), 'mine');
  assert.equal(await nameOf(states.observe(keeper(), podWith('gone'), { signal })), undefined);
  assert.equal(await nameOf(states.observe(keeper(), aPod(), { signal })), undefined);
});

test('an instance that has ended or lost its pod keeps its reported claim and requests no other', async () => {
  const { states } = await observer([aMarkedClaim('kept'), aMarkedClaim('mine')]);
  const volumeStatus = [{ name: STATE_VOLUME, persistentVolumeClaimInfo: { claimName: 'mine' } }];
  assert.equal(await nameOf(states.observe(keeper({ phase: 'Failed', volumeStatus }), undefined, { signal })), 'mine');
  assert.equal(await nameOf(states.observe(keeper({ phase: 'Scheduling' }), undefined, { signal })), undefined);
});
