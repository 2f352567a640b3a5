import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VIRTUAL_MACHINE_RESTORES, type VirtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import { FakeApi } from '#client/testing/fake-api.ts';
import { FakeLink } from '#client/testing/fake-link.ts';
import { createRestoreLookup } from '#plane/components/webhook.ts';
import type { Stored } from '#kube/meta.ts';

test('a restore that has finished since the cache saw it refuses no other one', async () => {
  const api = new FakeApi();
  const { client } = new FakeLink(api, [VIRTUAL_MACHINE_RESTORES]);
  const create = (name: string, status: VirtualMachineRestore['status']) =>
    api.create(VIRTUAL_MACHINE_RESTORES, {
      apiVersion: 'snapshot.kubevirt.io/v1beta1',
      kind: 'VirtualMachineRestore',
      metadata: { namespace: 'ns', name },
      spec: { target: { kind: 'VirtualMachine', name: 'db' }, virtualMachineSnapshotName: 'snap' },
      status,
    }) as Stored<VirtualMachineRestore>;
  const cached = [create('finished', { complete: true }), create('running', {}), create('deleted', {})];
  api.remove(VIRTUAL_MACHINE_RESTORES, { namespace: 'ns', name: 'deleted' });
  const restoresOf = createRestoreLookup(client, () => ({ byIndex: () => cached }));
  assert.deepEqual(
    (await restoresOf('ns', 'db')).map(({ name }) => name),
    ['running'],
  );
});
