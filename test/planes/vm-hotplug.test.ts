/**
 * Disks and interfaces that are added to and removed from the template while the guest runs. The test plays the node
 * agent.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { customKinds } from '#api/custom-kinds/all-kinds.ts';
import { EPHEMERAL_HOTPLUG_ANNOTATION, IMPORTED_DEVICES_ANNOTATION } from '#api/names.ts';
import { storageController } from '#controllers/storage/storage-controller.ts';
import { vmController } from '#controllers/vm/vm-controller.ts';
import { vmiController } from '#controllers/vmi/vmi-controller.ts';
import type { Loose } from '#test/support/test-api.ts';
import { staticDeviceMap, deviceStatusOf } from '#test/support/static-devices.ts';
import { CLAIMS, PODS, startVmiScene, VMIS, VOLUMES, type VmiScene } from '#test/support/vmi-scene.ts';

const VM = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines/db';
const RECORD = '/apis/identity.selfsame.io/v1/namespaces/default/virtualmachineidentities/db';
const LOCAL = { volumeBindingMode: 'WaitForFirstConsumer', parameters: { scope: 'node' } };
const MAC = '02:00:00:00:00:01';
const DEVICES = ['a', 'b'].map((name) => ({
  id: `nic-${name}`,
  type: 'interface',
  device: 'virtio',
  name,
  managed: true,
}));

const nic = (name: string, more: Loose = {}) => ({ name, bridge: {}, ...more });
const network = (name: string) => ({ name, multus: { networkName: `br-${name}` } });
const disk = (name: string) => ({ name, disk: { bus: 'scsi' } });
const volume = (name: string) => ({ name, persistentVolumeClaim: { claimName: name, hotpluggable: true } });

async function start(t: TestContext, metadata: Loose = {}, learners = [staticDeviceMap(DEVICES)]): Promise<VmiScene> {
  const own = [vmController, vmiController, storageController, ...learners];
  const scene = await startVmiScene(t, own, customKinds);
  await scene.addNode('node-1');
  await scene.addNode('node-2');
  await scene.addStorageClass('local', LOCAL);
  const domain = {
    memory: { guest: '128Mi' },
    machine: { type: 'q35' },
    firmware: { uuid: '0c53b12d-8ce6-44d9-9e1b-6b1a0a3b2a10' },
    devices: { interfaces: [nic('a', { macAddress: MAC })] },
  };
  const body = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'db', ...metadata },
    spec: { runStrategy: 'Always', template: { spec: { domain, networks: [network('a')] } } },
  };
  await scene.ok('POST', VM.slice(0, -'/db'.length), { body });
  await scene.settle();
  return scene;
}

/** Starts a scene with a running guest. */
async function startRunning(t: TestContext): Promise<VmiScene> {
  const scene = await start(t);
  const { items } = await scene.ok('GET', PODS);
  await scene.reportPod(items[0].metadata.name, { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] });
  const { nodeName: _, ...reported } = deviceStatusOf(DEVICES);
  await reportStatus(scene, reported);
  return scene;
}

async function reportStatus(scene: VmiScene, status: Loose): Promise<void> {
  await scene.ok('PATCH', `${VMIS}/db/status`, { body: { status } });
  await scene.settle();
}

async function patchTemplate(scene: VmiScene, spec: Loose): Promise<void> {
  await scene.ok('PATCH', VM, { body: { spec: { template: { spec } } } });
  await scene.settle();
}

const getVmi = (scene: VmiScene): Promise<Loose> => scene.ok('GET', `${VMIS}/db`);
async function readClaim(scene: VmiScene): Promise<Loose> {
  const { status, body } = await scene.call('GET', `${CLAIMS}/data`);
  return status === 404 ? undefined : body;
}

async function needsRestart(scene: VmiScene): Promise<boolean> {
  const { conditions } = (await scene.ok('GET', VM)).status;
  return conditions.some(({ type }: Loose) => type === 'RestartRequired');
}

async function hotplugReasons(scene: VmiScene): Promise<string[]> {
  const texts = (await scene.eventsOf('db')).map((text) => text.split(' ')[1] ?? '');
  return texts.filter((reason) => /plug/i.test(reason));
}

test('a disk is added with its claim, which stays until the guest has released the disk', async (t) => {
  const scene = await startRunning(t);
  const { metadata } = await scene.addClaim('data', { storageClassName: 'local' });
  await patchTemplate(scene, { domain: { devices: { disks: [disk('data')] } }, volumes: [volume('data')] });

  const vmi = await getVmi(scene);
  assert.deepEqual([vmi.spec.domain.devices.disks, vmi.spec.volumes], [[disk('data')], [volume('data')]]);
  const { name, hotplugVolume, phase } = vmi.status.volumeStatus[0];
  assert.deepEqual([name, hotplugVolume, phase], ['data', {}, 'Pending']);
  // No pod is its first consumer: the node of the guest is.
  const home = await scene.ok('GET', `${VOLUMES}/pvc-${metadata.uid}`);
  assert.equal(home.metadata.annotations['selfsame.io/volume-node'], vmi.status.nodeName);
  assert.equal((await readClaim(scene)).status.phase, 'Bound');

  await reportStatus(scene, { hotplug: [{ device: 'disk-data', phase: 'Ready' }] });
  assert.equal((await getVmi(scene)).status.volumeStatus[0].phase, 'Ready');
  assert.equal(await needsRestart(scene), false);

  await scene.ok('DELETE', `${CLAIMS}/data`);
  await scene.settle();
  assert.ok((await readClaim(scene)).metadata.deletionTimestamp);

  await patchTemplate(scene, { domain: { devices: { disks: null } }, volumes: null });
  assert.equal((await getVmi(scene)).spec.volumes, undefined);
  await reportStatus(scene, { hotplug: [{ device: 'disk-data', phase: 'Unplugging' }] });
  assert.equal((await getVmi(scene)).status.volumeStatus[0].phase, 'Detaching');
  assert.ok(await readClaim(scene));

  await reportStatus(scene, { hotplug: null });
  assert.deepEqual([(await getVmi(scene)).status.volumeStatus, await readClaim(scene)], [undefined, undefined]);
  assert.deepEqual(await hotplugReasons(scene), ['HotplugVolume', 'UnplugVolume']);
});

test('a volume for this run only stays, and becomes permanent when the VM has it', async (t) => {
  const scene = await startRunning(t);
  const note = { [EPHEMERAL_HOTPLUG_ANNOTATION]: '["data"]' };
  const spec = { domain: { devices: { disks: [disk('data')] } }, volumes: [volume('data')] };
  await scene.ok('PATCH', `${VMIS}/db`, { body: { metadata: { annotations: note }, spec } });
  await scene.settle();
  assert.deepEqual([(await getVmi(scene)).spec.volumes, await needsRestart(scene)], [[volume('data')], false]);

  await patchTemplate(scene, spec);
  const { metadata, spec: after } = await getVmi(scene);
  assert.deepEqual([metadata.annotations[EPHEMERAL_HOTPLUG_ANNOTATION], after.volumes], [undefined, [volume('data')]]);
  assert.deepEqual(await hotplugReasons(scene), []);
});

test('an interface is added with a recorded MAC address, removed once that is recorded, and added again', async (t) => {
  const scene = await startRunning(t);
  const a = nic('a', { macAddress: MAC });
  const networks = [network('a'), network('b')];
  const interfaces = async (list: Loose[]) =>
    patchTemplate(scene, { domain: { devices: { interfaces: list } }, networks });
  await interfaces([a, nic('b')]);
  const vmi = await getVmi(scene);
  const [, { macAddress }] = vmi.spec.domain.devices.interfaces;
  assert.deepEqual(vmi.spec.networks, networks);
  const recorded = [
    { name: 'a', macAddress: MAC, fromTemplate: true },
    { name: 'b', macAddress },
  ];
  assert.deepEqual((await scene.ok('GET', RECORD)).spec.interfaces, recorded);

  await interfaces([a, nic('b', { state: 'absent' })]);
  const readRow = async () => (await scene.ok('GET', RECORD)).status.devices.find(({ id }: Loose) => id === 'nic-b');
  const removed = (await getVmi(scene)).spec.domain.devices.interfaces[1];
  assert.deepEqual([removed.state, removed.macAddress, (await readRow()).plugged], ['absent', macAddress, false]);

  await interfaces([a, nic('b')]);
  const back = (await getVmi(scene)).spec.domain.devices.interfaces[1];
  assert.deepEqual([back.state, back.macAddress, (await readRow()).plugged], [undefined, macAddress, undefined]);
  assert.equal(await needsRestart(scene), false);
  // Reported twice, counted.
  assert.deepEqual((await hotplugReasons(scene)).toSorted(), ['HotplugInterface', 'UnplugInterface']);
});

test('an imported VM starts when its devices are on record', async (t) => {
  const devices = [{ id: 'nic-a', type: 'interface', device: 'virtio', address: { type: 'pci', bus: '0x07' } }];
  const annotations = { [IMPORTED_DEVICES_ANNOTATION]: JSON.stringify({ from: 'a test', devices }) };
  const waiting = await start(t, { annotations }, []);
  assert.equal((await waiting.call('GET', `${VMIS}/db`)).status, 404);
  const { conditions, printableStatus } = (await waiting.ok('GET', VM)).status;
  assert.deepEqual([printableStatus, conditions[0].reason], ['Starting', 'ImportedDevicesPending']);

  const scene = await start(t, { annotations });
  assert.equal((await getVmi(scene)).status.phase, 'Scheduled');
  assert.deepEqual((await scene.ok('GET', RECORD)).status.devices[0].address, devices[0]?.address);
});
