/** Hotplug of volumes on the whole API: roles, webhook, and the subresources that patch. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { aVm, aVmi } from '#api/validation/testing/valid-objects.ts';
import { systemClock } from '#lib/clock.ts';
import { newUid } from '#lib/ids.ts';
import { silentLog } from '#lib/log.ts';
import { asAccount } from '#operator/testing/operator-plane.ts';
import type { SubresourceHandler } from '#subresources/http-types.ts';
import type { NodeConnections } from '#subresources/node-connections.ts';
import { createSubresourcesApi } from '#subresources/subresources-api.ts';
import { startAdmissionScene, type AdmissionScene } from '#test/scenarios/admission-scene.ts';
import type { Loose, TestApi } from '#test/support/test-api.ts';

const GOLDEN = '/apis/kubevirt.io/v1/namespaces/golden';
const DATA = {
  name: 'data',
  disk: { disk: { bus: 'scsi' } },
  volumeSource: { persistentVolumeClaim: { claimName: 'data' } },
};

let scene: AdmissionScene;
let api: TestApi;
let subresources: SubresourceHandler;

const refuseCalls = async (): Promise<never> => assert.fail('no node is called');
const nodes: NodeConnections = {
  put: refuseCalls,
  get: refuseCalls,
  post: refuseCalls,
  upgrade: refuseCalls,
  close: () => {},
};

before(async () => {
  scene = await startAdmissionScene('golden');
  ({ api } = scene);
  const client = scene.plane.client('selfsame-subresources');
  subresources = createSubresourcesApi({ client, nodes, log: silentLog, clock: systemClock });
});
after(() => scene.stop());

let count = 0;
const patchOf = (more: object = {}) => ({ metadata: { name: `vm-${++count}` }, ...more });

async function createRunning(): Promise<Loose> {
  const patch = patchOf({ spec: { domain: { firmware: { uuid: newUid() } } } });
  const vmi = await api.ok('POST', `${GOLDEN}/virtualmachineinstances`, { body: aVmi(patch) });
  const path = `${GOLDEN}/virtualmachineinstances/${vmi.metadata.name}`;
  await api.ok('PATCH', `${path}/status`, { body: { status: { phase: 'Running' } } });
  return { name: vmi.metadata.name, path };
}

async function put(kind: string, name: string, verb: string, body: unknown) {
  const answer = await subresources({
    method: 'PUT',
    path: `/apis/subresources.kubevirt.io/v1/namespaces/golden/${kind}/${name}/${verb}`,
    query: new URLSearchParams(),
    user: { name: 'ada', groups: [] },
    body: async () => Buffer.from(JSON.stringify(body)),
    signal: new AbortController().signal,
  });
  assert.ok('body' in answer);
  const text = answer.body.toString();
  const refusal: Loose = text === '' ? { message: '' } : JSON.parse(text);
  return { status: answer.status, message: refusal.message };
}

test('a volume is added to an instance and removed again', async () => {
  const { name, path } = await createRunning();
  const kind = 'virtualmachineinstances';
  assert.deepEqual(await put(kind, name, 'addvolume', DATA), { status: 202, message: '' });
  const { spec } = await api.ok('GET', path);
  assert.deepEqual(spec.volumes.at(-1), {
    name: 'data',
    persistentVolumeClaim: { claimName: 'data', hotpluggable: true },
  });
  assert.deepEqual(await put(kind, name, 'removevolume', { name: 'data' }), { status: 202, message: '' });
  assert.equal((await api.ok('GET', path)).spec.volumes.length, 2);
});

const refusals: Record<string, { disk: object; message: RegExp }> = {
  'on a bus without hotplug': {
    disk: { disk: { bus: 'sata' } },
    message:
      /disks\[2\]\.disk\.bus: Invalid value: "sata": a hotpluggable volume requires bus to be 'scsi' or 'virtio'$/,
  },
  'as a CD-ROM': {
    disk: { cdrom: { bus: 'scsi' } },
    message: /disks\[2\]\.cdrom: Forbidden: a hotpluggable volume must be a disk or a lun$/,
  },
  'with an unknown field': {
    disk: { disk: { bus: 'scsi' }, io: 'native' },
    message: /disks\[2\]\.io: Forbidden: is not supported yet$/,
  },
};
for (const [name, { disk, message }] of Object.entries(refusals)) {
  test(`refuses a volume ${name}`, async () => {
    const { body: vm } = await api.call('POST', `${GOLDEN}/virtualmachines`, { body: aVm(patchOf()) });
    const vmi = await createRunning();
    for (const [kind, of] of [
      ['virtualmachines', vm.metadata.name],
      ['virtualmachineinstances', vmi.name],
    ]) {
      const answer = await put(kind, of, 'addvolume', { ...DATA, disk });
      assert.equal(answer.status, 422);
      assert.match(answer.message, message);
    }
  });
}

test('users cannot plug devices into an instance; the VM controller can, and only devices that support it', async () => {
  const { path } = await createRunning();
  const { spec } = await api.ok('GET', path);
  const nic = { name: 'lan', bridge: {} };
  const networks = [...spec.networks, { name: 'lan', multus: { networkName: 'br0' } }];
  const change = (more: object) => ({
    body: {
      spec: { networks, domain: { devices: { interfaces: [...spec.domain.devices.interfaces, nic] }, ...more } },
    },
  });
  const restricted = /update of VMI object is restricted$/;
  const controller = { user: asAccount('vm-controller') };
  assert.match((await api.call('PATCH', path, change({}))).body.message, restricted);
  const cores = await api.call('PATCH', path, { ...change({ cpu: { cores: 4 } }), ...controller });
  assert.match(cores.body.message, restricted);
  const answer = await api.call('PATCH', path, { ...change({}), ...controller });
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.body.spec.domain.devices.interfaces.length, 2);
});

test('devices for a VM are accepted when it is created, and not later', async () => {
  const importAnnotation = (value: string) => ({ annotations: { 'identity.selfsame.io/imported-devices': value } });
  const text = JSON.stringify({ from: 'test', devices: [{ id: 'disk-root', type: 'disk', device: 'disk' }] });
  const create = (value: string) => {
    const { metadata } = patchOf();
    const body = aVm({ metadata: { ...metadata, ...importAnnotation(value) } });
    return api.call('POST', `${GOLDEN}/virtualmachines`, { body });
  };
  const broken = await create('{"from":"test","devices":[{}]}');
  assert.match(broken.body.message, /imported-devices\]: Invalid value: devices\[0\]\.id is missing$/);
  const created = await create(text);
  assert.equal(created.status, 201, created.text);
  const path = `${GOLDEN}/virtualmachines/${created.body.metadata.name}`;
  const later = await api.call('PATCH', path, { body: { metadata: importAnnotation('{}') } });
  assert.match(later.body.message, /Forbidden: may only be set when the VirtualMachine is created$/);
});
