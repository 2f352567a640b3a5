/** A stolen credential of one node: what it reads and writes of guests on other nodes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CallOptions, Loose } from '#test/support/test-api.ts';
import { aVm, startVmPlane } from '#test/support/vm-plane.ts';

const VMIS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';
const RECORDS = '/apis/identity.selfsame.io/v1/namespaces/default/virtualmachineidentities';
const PODS = '/api/v1/namespaces/default/pods';
const EVENTS = '/api/v1/namespaces/default/events';

test('the credential of a node', async (t) => {
  const plane = await startVmPlane(t);
  const [first, second] = plane.nodes.map(({ name }) => name) as [string, string];
  const seed = { name: 'seed', cloudInitNoCloud: { userData: '#cloud-config\npassword: hunter2' } };
  for (const [vm, node] of [
    ['mine', first],
    ['other', second],
  ] as const) {
    const template = { nodeSelector: { 'kubernetes.io/hostname': node }, volumes: [seed] };
    const devices = { disks: [{ name: 'seed', disk: {} }] };
    await plane.apply(aVm(vm, { runStrategy: 'Always' }, { ...template, domain: { devices } }));
    assert.equal((await plane.get('VirtualMachineInstance', vm)).status.nodeName, node);
  }
  const { api } = plane.server;
  const user = { name: `system:node:${first}`, groups: ['system:nodes', 'system:authenticated'] };
  const call = (method: string, url: string, options: CallOptions = {}) => api.call(method, url, { user, ...options });
  const podOf = async (vm: string): Promise<Loose> =>
    (await plane.list('Pod')).find(({ metadata }) => metadata.annotations['kubevirt.io/domain'] === vm);

  await t.test('reads its own instance, and not the cloud-init data of guests on other nodes', async () => {
    assert.equal((await call('GET', `${VMIS}/mine`)).status, 200);
    const own = await call('GET', `${VMIS}?labelSelector=kubevirt.io/nodeName=${first}`);
    assert.deepEqual(
      own.body.items.map(({ metadata }: Loose) => metadata.name),
      ['mine'],
    );
    assert.equal((await call('GET', `${RECORDS}/mine`)).status, 200);
    for (const url of [
      RECORDS,
      `${RECORDS}/other`,
      `${VMIS}/other`,
      VMIS,
      `${VMIS}?fieldSelector=metadata.name=other`,
      `${VMIS}?labelSelector=kubevirt.io/nodeName=${second}`,
      `${VMIS}?labelSelector=kubevirt.io/nodeName`,
      `${VMIS}?watch=true`,
      '/apis/kubevirt.io/v1/virtualmachineinstances',
      PODS,
      `${PODS}/${(await podOf('other')).metadata.name}`,
    ]) {
      const { status, text } = await call('GET', url);
      assert.equal(status, 403, url);
      assert.doesNotMatch(text, /hunter2/);
    }
  });

  await t.test('learns nothing of other guests from a refused patch', async () => {
    const contentType = 'application/json-patch+json';
    const pod = (await podOf('other')).metadata.name;
    const copy = (from: string, path: string) => [{ op: 'copy', from, path }];
    const urls: Record<string, string> = {
      [`${VMIS}/other/status`]: '/spec/volumes',
      [`${VMIS}/other`]: '/spec/volumes',
      [`${PODS}/${pod}/status`]: '/spec',
      [`${PODS}/${pod}`]: '/spec',
      [`${RECORDS}/other/status`]: '/spec',
    };
    for (const [url, from] of Object.entries(urls)) {
      const attempts = [
        copy(from, '/metadata/name'),
        copy(from, '/metadata/uid'),
        copy(from, '/metadata/labels'),
        // The first is met, the second is not: the answers must not differ.
        [{ op: 'test', path: '/kind', value: 'Pod' }],
        [{ op: 'test', path: '/kind', value: 'x' }],
      ];
      for (const body of attempts) {
        const { status, text } = await call('PATCH', url, { body, contentType });
        assert.equal(status, 403, `${url} ${JSON.stringify(body)}: ${text}`);
        assert.doesNotMatch(text, /hunter2|compute/);
      }
      const put = await call('PUT', url, { body: { metadata: { uid: 'x' } } });
      assert.equal(put.status, 403, put.text);
    }
    assert.equal((await call('DELETE', `${PODS}/${pod}`)).status, 403);
  });

  await t.test('records Events of its own objects only', async () => {
    const record = async (kind: string, object: Loose, apiVersion = 'v1') => {
      const { name, uid, namespace } = object.metadata;
      const involvedObject = { apiVersion, kind, name, uid, namespace };
      const metadata = { generateName: 'e', namespace: 'default' };
      const event = {
        apiVersion: 'v1',
        kind: 'Event',
        metadata,
        involvedObject,
        reason: 'X',
        message: 'x',
        type: 'Normal',
      };
      const { status, body } = await call('POST', EVENTS, { body: event });
      return status === 201 ? 'recorded' : body.message;
    };
    const vmi = (name: string) => plane.get('VirtualMachineInstance', name);
    assert.equal(await record('VirtualMachineInstance', await vmi('mine'), 'kubevirt.io/v1'), 'recorded');
    assert.equal(await record('Pod', await podOf('mine')), 'recorded');
    assert.equal(await record('Node', await plane.get('Node', first)), 'recorded');
    assert.match(
      await record('VirtualMachineInstance', await vmi('other'), 'kubevirt.io/v1'),
      /can only record events of its own objects, not of VirtualMachineInstance "other"$/,
    );
    assert.match(await record('Pod', await podOf('other')), /not of Pod "virt-launcher-other/);
    assert.match(await record('Node', await plane.get('Node', second)), /not of Node/);
    const { metadata } = await podOf('other');
    for (const namespace of ['', undefined, 'kube-system']) {
      assert.match(await record('Pod', { metadata: { ...metadata, namespace } }), /not of Pod|does not match/);
    }
    const stranger = await plane.get('VirtualMachine', 'other');
    assert.match(await record('VirtualMachine', stranger, 'kubevirt.io/v1'), /not of VirtualMachine "other"$/);
  });

  await t.test('changes the status of no claim that it does not use', async () => {
    const claims = '/api/v1/namespaces/default/persistentvolumeclaims';
    const spec = {
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'none',
      resources: { requests: { storage: '1Gi' } },
    };
    const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'foreign' }, spec };
    await api.ok('POST', claims, { body: claim });
    const report = async (name: string, storage = '100Pi') => {
      const body = { status: { allocatedResources: { storage } } };
      const contentType = 'application/merge-patch+json';
      const { status, body: answer } = await call('PATCH', `${claims}/${name}/status`, { body, contentType });
      return status === 200 ? 'changed' : answer.message;
    };
    assert.match(await report('foreign'), /can only update the status of claims that it uses$/);
  });

  await t.test('changes no owners and finalizers through a status', async () => {
    const { metadata } = await podOf('mine');
    const body = { metadata: { ownerReferences: null, finalizers: ['a.example.com/b'] }, status: { message: 'x' } };
    const contentType = 'application/merge-patch+json';
    assert.equal((await call('PATCH', `${PODS}/${metadata.name}/status`, { body, contentType })).status, 200);
    const now = (await podOf('mine')).metadata;
    assert.deepEqual([now.ownerReferences, now.finalizers], [metadata.ownerReferences, metadata.finalizers]);
    assert.equal(now.ownerReferences.length, 1);
    const labelled = { metadata: { annotations: { 'kubevirt.io/domain': 'other' } } };
    const refused = await call('PATCH', `${PODS}/${metadata.name}/status`, { body: labelled, contentType });
    assert.equal(refused.status, 403, refused.text);
    const instance = { metadata: { ownerReferences: null, labels: { x: 'y' } }, status: { guestOSInfo: {} } };
    const before = (await plane.get('VirtualMachineInstance', 'mine')).metadata;
    await call('PATCH', `${VMIS}/mine/status`, { body: instance, contentType });
    const after = (await plane.get('VirtualMachineInstance', 'mine')).metadata;
    assert.deepEqual([after.ownerReferences, after.labels], [before.ownerReferences, before.labels]);
  });
});
