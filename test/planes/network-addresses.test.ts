/** The address of a guest on the default network belongs to its VM: allocation, refusals and release. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Loose } from '#test/support/test-api.ts';
import { aVm, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const SUBNETS = ['10.244.0.0/16', 'fd00:10:244::/64'];
const RUNNING = { runStrategy: 'Always' };

const guestNetwork = (subnets: readonly string[] = SUBNETS): Loose => ({
  apiVersion: 'network.selfsame.io/v1',
  kind: 'GuestNetwork',
  metadata: { name: 'default' },
  spec: { subnets },
});

/** Returns the addresses of the VM's launcher pods that have not ended, one text for each pod. */
async function podAddresses(plane: VmPlane, vm: string): Promise<string[]> {
  return (await plane.list('Pod'))
    .filter(({ metadata, status }) => metadata.annotations['kubevirt.io/domain'] === vm && status.phase === 'Running')
    .map(({ metadata }) => metadata.annotations['network.selfsame.io/addresses']);
}

/** Returns the addresses of the VM, sorted. */
async function addressesOf(plane: VmPlane, vm: string): Promise<string[]> {
  const all = await plane.list('NetworkAddress');
  return all.filter(({ spec }) => spec.owner.name === vm).map(({ spec }) => spec.address);
}

test('the addresses of VMs on the default network', async (t) => {
  const plane = await startVmPlane(t);

  await t.test('without a GuestNetwork, launcher pods name no addresses', async () => {
    await plane.apply(aVm('early', RUNNING));
    assert.deepEqual(await podAddresses(plane, 'early'), [undefined]);
    await plane.apply(guestNetwork());
    assert.deepEqual(await addressesOf(plane, 'early'), [], 'a running guest keeps its network until its next start');
    await plane.runVerb('restart', 'early');
    assert.equal((await addressesOf(plane, 'early')).length, 2);
    await plane.delete('VirtualMachine', 'early');
  });

  await t.test('a VM keeps its addresses through restart, stop and migration', async () => {
    await plane.apply(aVm('db', RUNNING));
    const first = await addressesOf(plane, 'db');
    assert.equal(first.length, 2);
    const [v4 = '', v6 = ''] = first;
    const annotation = JSON.stringify({ default: [`${v4}/16`, `${v6}/64`] });
    assert.deepEqual(await podAddresses(plane, 'db'), [annotation]);
    await plane.runVerb('restart', 'db');
    assert.deepEqual(await podAddresses(plane, 'db'), [annotation]);
    assert.equal(plane.startsOf('db').length, 2);
    await plane.runVerb('stop', 'db');
    await plane.advance(60 * 60_000);
    assert.deepEqual(await addressesOf(plane, 'db'), first);
    await plane.runVerb('start', 'db');
    assert.deepEqual(await podAddresses(plane, 'db'), [annotation]);
    await plane.runVerb('migrate', 'db');
    await plane.advance(30_000);
    assert.deepEqual(await podAddresses(plane, 'db'), [annotation]);
    assert.match((await plane.list('VirtualMachineInstanceMigration'))[0].status.phase, /Succeeded/);
  });

  await t.test('the deletion of the VM frees them', async () => {
    await plane.delete('VirtualMachine', 'db');
    assert.deepEqual(await plane.list('NetworkAddress'), []);
  });
});
