import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HOST_CODES, type HostVerb, type HostVm } from '#api/host-api.ts';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { silentLog } from '#lib/log.ts';
import { DeviceReadings } from '#node/guests/device-readings.ts';
import { DomainLocks } from '#node/guests/domain-locks.ts';
import type { GuestAgentReport } from '#node/guest-agent/agent-reader.ts';
import { openHostApi } from '#node/host-api/host-api.ts';
import { createFakeHypervisor } from '#node/hypervisor/fake/fake-hypervisor.ts';
import { aDefinition } from '#node/hypervisor/testing/a-definition.ts';

const INTERFACES = [
  { name: 'eth0', addresses: ['fe80::1', '10.0.2.15', '10.0.2.16'] },
  { name: 'Loopback Pseudo-Interface 1', addresses: ['127.0.0.1', '::1'] },
  { name: 'docker0', addresses: ['172.17.0.1'] },
];

/** The devices of `a` have been read; `b` is paused and has not been read; `c` has ended. */
async function aScene() {
  const clock = new FakeClock();
  const hypervisor = createFakeHypervisor({ clock });
  await hypervisor.adopt();
  for (const id of ['a', 'b', 'c']) {
    await hypervisor.create(aDefinition({ id, name: `default/${id}` }), { paused: id === 'b' });
  }
  hypervisor.guest('c').shutDown();
  const readings = new DeviceReadings({ hypervisor, clock });
  await readings.read('a');
  const agents = {
    get: (id: string): GuestAgentReport | undefined => (id === 'a' ? { os: {}, interfaces: INTERFACES } : undefined),
  };
  const host = await openHostApi({
    dir: undefined,
    hypervisor,
    readings,
    agents,
    turns: new DomainLocks(),
    capabilities: await hypervisor.capabilities(),
    clock,
    log: silentLog,
  });
  const call = (verb: HostVerb, parameters: Record<string, unknown> = {}) =>
    host.call(verb, parameters, { signal: new AbortController().signal });
  return { readings, call };
}

test('list returns ids, states, or everything', async () => {
  const { readings, call } = await aScene();
  assert.deepEqual(await call('list', { onlyUUID: true }), { status: HOST_CODES.done, vmList: ['a', 'b', 'c'] });
  assert.deepEqual((await call('list')).vmList, [
    { vmId: 'a', status: 'Up' },
    { vmId: 'b', status: 'Paused' },
    { vmId: 'c', status: 'Down' },
  ]);
  const { vmList = [] } = await call('list', { fullStatus: true });
  const [read, unread] = vmList as HostVm[];
  const { devices, ...rest } = read!;
  assert.deepEqual(rest, {
    vmId: 'a',
    vmName: 'default/a',
    status: 'Up',
    emulatedMachine: 'pc-q35-7.2',
    memSize: 64,
    smp: '1',
    uuid: '5d307ca9-b3ef-428c-8861-06e72d69f223',
    hash: readings.get('a')!.hash,
    deviceRevision: readings.get('a')!.revision,
  });
  assert.deepEqual(
    devices.map(({ deviceId, alias }) => [deviceId, alias]),
    readings.get('a')!.devices.map(({ id }) => [id, id]),
  );
  // The devices have not been read yet, so they come from the definition, without a hash.
  assert.deepEqual([unread!.hash, unread!.deviceRevision], [undefined, undefined]);
  assert.deepEqual(
    unread!.devices.map(({ deviceId }) => deviceId),
    devices.map(({ deviceId }) => deviceId),
  );
});

test('list returns only the requested VMs and skips unknown ids', async () => {
  const { call } = await aScene();
  const { vmList } = await call('list', { vmList: ['c', 'nobody', 'a', 'c'], onlyUUID: true });
  assert.deepEqual(vmList, ['c', 'a']);
  assert.equal((await call('list', { vmList: 'a' })).status.code, HOST_CODES.unexpected.code);
});

test('statistics have the hash of guests that were read, and the IPv4 addresses that agents report', async () => {
  const { readings, call } = await aScene();
  assert.deepEqual((await call('getAllVmStats')).statsList, [
    {
      ...{ vmId: 'a', status: 'Up', hash: readings.get('a')!.hash },
      ...{ monitorResponse: '0', guestIPs: '10.0.2.15 10.0.2.16 172.17.0.1' },
    },
    { vmId: 'b', status: 'Paused', monitorResponse: '0', guestIPs: '' },
    { vmId: 'c', status: 'Down' },
  ]);
});

test('refuses verbs that write if the node has no directory', async () => {
  const { call } = await aScene();
  assert.equal((await call('destroy', { vmId: 'a' })).status.code, HOST_CODES.unexpected.code);
});
