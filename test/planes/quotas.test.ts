/** VMs in a namespace with quotas: their pods have what the quota asks for, and wait where it has no room. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Loose } from '#test/support/test-api.ts';
import { aVm, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const ALWAYS = { runStrategy: 'Always' };
const aQuota = (hard: Record<string, string>) => ({
  apiVersion: 'v1',
  kind: 'ResourceQuota',
  metadata: { name: 'compute' },
  spec: { hard },
});

const podOf = async (plane: VmPlane, vm: string): Promise<Loose> =>
  (await plane.list('Pod')).find(({ metadata }) => metadata.annotations['kubevirt.io/domain'] === vm);
const usedOf = async (plane: VmPlane) => (await plane.find('ResourceQuota', 'compute')).status.used;

test('VMs and quotas', async (t) => {
  const plane = await startVmPlane(t);
  const hard = { 'requests.cpu': '1', 'limits.cpu': '2', 'requests.memory': '1Gi', 'limits.memory': '1Gi' };

  await t.test('a VM starts under a quota for compute resources, because its containers have limits', async () => {
    await plane.apply(aQuota(hard));
    await plane.apply(aVm('first', ALWAYS));
    assert.equal(await plane.summaryOf('first'), 'Running, VMI Running, running, 1');
    const { spec } = await podOf(plane, 'first');
    assert.deepEqual(
      spec.containers.map(({ name, resources }: Loose) => [name, resources.limits]),
      [
        ['compute', { cpu: '1', memory: '211Mi' }],
        ['guest-console-log', { cpu: '5m', memory: '8Mi' }],
      ],
    );
    assert.deepEqual(await usedOf(plane), {
      'requests.cpu': '105m',
      'limits.cpu': '1005m',
      'requests.memory': '219Mi',
      'limits.memory': '219Mi',
    });
  });

  await t.test('a VM that exceeds the quota waits, says why, and starts when there is room', async () => {
    await plane.apply(aVm('second', ALWAYS));
    const { status } = await plane.find('VirtualMachineInstance', 'second');
    const { reason, message } = status.conditions.find(({ type }: Loose) => type === 'Synchronized');
    assert.equal(reason, 'FailedCreate');
    assert.match(message, /exceeded quota: compute, requested: limits.cpu=1005m, used: limits.cpu=1005m, limited/);
    await plane.delete('VirtualMachine', 'first');
    assert.equal(await plane.summaryOf('second'), 'Running, VMI Running, running, 1');
  });

  await t.test('a VM counts with the memory that its guest can use, whatever it requests', async () => {
    const domain = { memory: { guest: '200Gi' }, resources: { requests: { memory: '1Mi' } } };
    await plane.apply(aVm('huge', ALWAYS, { domain }));
    const { status } = await plane.find('VirtualMachineInstance', 'huge');
    const { message } = status.conditions.find(({ type }: Loose) => type === 'Synchronized');
    assert.match(message, /exceeded quota: compute, requested: .*requests.memory=205290Mi/);
  });
});
