import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Reader } from '#client/client.ts';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import type { DiskDevice } from '#node/hardware/domain-definition.ts';
import { aVmi, VMI_UID } from '#node/definition/testing/a-vmi.ts';
import { plugDevice } from '#node/domains/hotplug/plug-device.ts';
import { createFakeHypervisor } from '#node/hypervisor/fake/fake-hypervisor.ts';
import { aDefinition, aDisk } from '#node/hypervisor/testing/a-definition.ts';
import type { Volumes } from '#node/volumes/volumes-port.ts';

const onClaim = (claim: string) => ({ path: `/claims/${claim}`, format: 'raw' as const });
const DEVICE = { id: 'disk-data', type: 'disk', name: 'data', is: 'missing' } as const;

/** The instance has no VM, and so no identity record to read. */
const unused = () => assert.fail('the API must not be called');

/** Plugs a disk into a guest that has these disks of an earlier attempt. */
async function plugInto(left: readonly DiskDevice[]) {
  const hypervisor = createFakeHypervisor({ clock: new FakeClock() });
  await hypervisor.adopt();
  const { devices } = aDefinition();
  await hypervisor.create(aDefinition({ id: VMI_UID, devices: [...devices, ...left] }));
  const volumes: Pick<Volumes, 'prepare'> = {
    prepare: async () => ({ is: 'ready', volumes: new Map([['data', { source: onClaim('b'), readonly: false }]]) }),
  };
  const vmi = aVmi(
    { devices: { disks: [{ name: 'data', disk: { bus: 'virtio' } }] } },
    { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'b', hotpluggable: true } }] },
  );
  const client: Reader = { get: unused, list: unused, watch: unused };
  const parts = { client, hypervisor, volumes: volumes as Volumes, signal: new AbortController().signal };
  const outcome = await plugDevice(vmi, DEVICE, parts);
  const disk = hypervisor.inspect(VMI_UID)?.definition.devices.find(({ id }) => id === DEVICE.id);
  return { outcome, path: disk?.type === 'disk' ? disk.source?.path : undefined };
}

test('a disk is plugged in', async () => {
  assert.deepEqual(await plugInto([]), { outcome: { is: 'plugged' }, path: '/claims/b' });
});

test('a disk that an earlier attempt plugged in counts as plugged', async () => {
  const leftover = aDisk('data', 4, onClaim('b'));
  assert.deepEqual(await plugInto([leftover]), { outcome: { is: 'plugged' }, path: '/claims/b' });
});

test('a disk of another claim that an earlier attempt plugged in does not count', async () => {
  const leftover = aDisk('data', 4, onClaim('a'));
  const { outcome, path } = await plugInto([leftover]);
  assert.deepEqual([outcome.is, path], ['waiting', '/claims/a']);
});
