/**
 * Protection marks on persistent state without an owner, on the real engine: they follow the VM as those of disks do.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PROTECTED_VMS_ANNOTATION, PROTECTION_LABEL } from '#api/protection/delete-protection.ts';
import { virtualMachine } from '#api/virtual-machine/kind.ts';
import { protectionController } from '#controllers/protection/protection-controller.ts';
import type { Loose } from '#test/support/test-api.ts';
import { CLAIMS, startVmiScene, VOLUMES } from '#test/support/vmi-scene.ts';

const VMS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const label = (value: string | null): Loose => ({ metadata: { labels: { [PROTECTION_LABEL]: value } } });

test('the state of a protected VM is marked, and so is its volume', async (t) => {
  const scene = await startVmiScene(t, [protectionController], [virtualMachine]);
  const marks = async () => {
    const urls = [`${CLAIMS}/kept`, `${VOLUMES}/pv-kept`, `${CLAIMS}/persistent-state-for-db`];
    const found = await Promise.all(urls.map((url) => scene.ok('GET', url)));
    return found.map(({ metadata }) => metadata.annotations?.[PROTECTED_VMS_ANNOTATION]);
  };
  const change = async (url: string, body: Loose) => {
    await scene.ok('PATCH', url, { body });
    await scene.settle();
  };

  for (const name of ['kept', 'persistent-state-for-db']) await scene.addClaim(name, { storageClassName: '' });
  const spec = {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    csi: { driver: 'csi.example.com', volumeHandle: 'kept' },
    claimRef: { namespace: 'default', name: 'kept' },
  };
  const volume = { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'pv-kept' }, spec };
  await scene.ok('POST', VOLUMES, { body: volume });
  const vm = { runStrategy: 'Halted', template: { spec: { domain: {} } } };
  await scene.ok('POST', VMS, {
    body: { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', metadata: { name: 'db' }, spec: vm },
  });
  await change(`${CLAIMS}/kept`, { metadata: { annotations: { 'persistent-state-for-db': 'true' } } });
  assert.deepEqual(await marks(), [undefined, undefined, undefined]);

  await change(`${VMS}/db`, label('true'));
  assert.deepEqual(await marks(), ['db', 'default/db', 'db']);

  // If two VMs have marked it, neither of them uses it.
  await change(`${CLAIMS}/kept`, { metadata: { labels: { 'persistent-state-for': 'web' } } });
  assert.deepEqual(await marks(), [undefined, undefined, 'db']);
  await change(`${CLAIMS}/kept`, { metadata: { labels: { 'persistent-state-for': 'db' } } });
  assert.deepEqual(await marks(), ['db', 'default/db', 'db']);

  await change(`${VMS}/db`, label(null));
  assert.deepEqual(await marks(), [undefined, undefined, undefined]);
});
