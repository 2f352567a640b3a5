/** VMs of the host API beside those of launcher pods: the agent reads their devices and does not change them. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { HostVerb, HostVm } from '#api/host-api.ts';
import { startAgentScene } from '#test/support/agent-scene.ts';

const VM_ID = '27c61cea-f4fd-47e9-84e8-d1598f32ccc0';

async function startHostApiScene(t: TestContext) {
  const hostDir = mkdtempSync(join(tmpdir(), 'agent-host-api-'));
  t.after(() => rmSync(hostDir, { recursive: true }));
  const scene = await startAgentScene(t, { hostDir });
  writeFileSync(join(hostDir, 'host-images', 'a.img'), 'some bytes');
  const call = async (verb: HostVerb, parameters: Record<string, unknown> = {}) => {
    const answer = await scene.agent().host?.call(verb, parameters, { signal: new AbortController().signal });
    assert.ok(answer !== undefined, 'the node serves the host API');
    return answer;
  };
  const listVm = async () => {
    const { vmList = [] } = await call('list', { fullStatus: true, vmList: [VM_ID] });
    return vmList[0] as HostVm;
  };
  return { scene, call, listVm };
}

const disk = { type: 'disk', device: 'disk', path: 'a.img', deviceId: 'their-own-id' };
const aVm = { vmId: VM_ID, memSize: 64, display: 'vnc', devices: [disk] };

test('the agent does not change a VM of the host API, and the next agent finds it', async (t) => {
  const { scene, call, listVm } = await startHostApiScene(t);
  assert.equal((await call('create', aVm)).status.message, 'Done');
  await scene.settle();
  const before = await listVm();
  assert.equal(before.status, 'Up');

  await scene.restart();
  await scene.advance(60);
  const { deviceRevision, ...after } = await listVm();
  const { deviceRevision: revisionBefore, ...known } = before;
  assert.deepEqual(after, known, 'the same VM, with the same hash');
  assert.ok((deviceRevision ?? 0) >= (revisionBefore ?? 0));
  assert.deepEqual(scene.starts.length, 1);
  assert.equal((await call('destroy', { vmId: VM_ID })).status.code, 0);
  await scene.settle();
  assert.deepEqual(scene.agent().domains(), []);
});

test('a device that the guest releases late is missing in the next list', async (t) => {
  const { scene, call, listVm } = await startHostApiScene(t);
  await call('create', { ...aVm, devices: [] });
  await call('hotplugDisk', { vmId: VM_ID, drive: disk });
  await scene.settle();
  const { hash } = await listVm();
  scene.hypervisor().guest(VM_ID).holdDevices();
  const unplugged = call('hotunplugDisk', { vmId: VM_ID, drive: { deviceId: disk.deviceId } });
  await scene.advance(35);
  assert.equal((await unplugged).status.code, 46);
  assert.equal((await listVm()).hash, hash);
  scene.hypervisor().guest(VM_ID).releaseDevices();
  await scene.settle();
  const after = await listVm();
  assert.notEqual(after.hash, hash);
  assert.ok(!after.devices.some(({ deviceId }) => deviceId === disk.deviceId));
});

test('VMs of both kinds are listed, and the host API cannot change a guest of a pod', async (t) => {
  const { scene, call } = await startHostApiScene(t);
  const { id } = await scene.launch('db');
  await call('create', aVm);
  await scene.settle();
  const { statsList = [] } = await call('getAllVmStats');
  assert.deepEqual(new Set(statsList.map(({ vmId }) => vmId)), new Set([id, VM_ID]));
  assert.ok(statsList.every(({ hash }) => hash !== undefined));
  assert.equal((await scene.vmi('db')).status.deviceHash, statsList.find(({ vmId }) => vmId === id)?.hash);
  assert.equal((await call('destroy', { vmId: id })).status.code, 16);
  assert.equal((await call('hotplugNic', { vmId: id, nic: {} })).status.code, 49);
});
