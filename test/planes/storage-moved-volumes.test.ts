/** The provisioner and volumes of guests that move: no wait for a node that is gone, and no growth during a move. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { storageController } from '#controllers/storage/storage-controller.ts';
import { CLAIMS, PODS, startVmiScene, VOLUMES } from '#test/support/vmi-scene.ts';

/** Creates a volume on node-1 that a pod uses. */
async function start(t: TestContext) {
  const scene = await startVmiScene(t, [storageController]);
  await scene.addNode('node-1');
  const parameters = { scope: 'node' };
  await scene.addStorageClass('local', {
    volumeBindingMode: 'WaitForFirstConsumer',
    allowVolumeExpansion: true,
    parameters,
  });
  const { metadata } = await scene.addClaim('disk', { storageClassName: 'local' });
  const volumes = [{ name: 'disk', persistentVolumeClaim: { claimName: 'disk' } }];
  const spec = { containers: [{ name: 'main', image: 'x' }], volumes };
  await scene.ok('POST', PODS, { body: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'user' }, spec } });
  await scene.settle();
  await scene.addNode('node-2');
  const name = `pvc-${metadata.uid}`;
  return {
    scene,
    name,
    volume: () => scene.ok('GET', `${VOLUMES}/${name}`),
    async note(annotations: Record<string, string | null>) {
      await scene.ok('PATCH', `${VOLUMES}/${name}`, { body: { metadata: { annotations } } });
      await scene.settle();
    },
  };
}

test('a leftover on a node is given up when that node is gone, with an Event', async (t) => {
  const { scene, name, volume, note } = await start(t);
  await note({ 'selfsame.io/volume-node': 'node-2', 'selfsame.io/leftover-node': 'node-1' });
  assert.equal((await volume()).metadata.annotations['selfsame.io/leftover-node'], 'node-1');

  await scene.ok('DELETE', '/api/v1/nodes/node-1');
  await scene.settle();

  const { annotations } = (await volume()).metadata;
  assert.equal(annotations['selfsame.io/leftover-node'], undefined);
  assert.equal(annotations['selfsame.io/volume-node'], 'node-2');
  const messages = (await scene.eventsOf(name)).filter((event) => event.includes('LeftoverNodeGone'));
  assert.equal(messages.length, 1);
  assert.match(messages[0] ?? '', /Node node-1 does not exist any more/);
});

test('a claim that requests more while its data moves grows afterwards', async (t) => {
  const { scene, volume, note } = await start(t);
  const before = (await volume()).spec.capacity.storage;
  await note({ 'selfsame.io/incoming-node': 'node-2' });
  const larger = { spec: { resources: { requests: { storage: '5Gi' } } } };
  await scene.ok('PATCH', `${CLAIMS}/disk`, { body: larger });
  await scene.settle();
  assert.equal((await volume()).spec.capacity.storage, before);

  await note({ 'selfsame.io/incoming-node': null, 'selfsame.io/volume-node': 'node-2' });
  assert.equal((await volume()).spec.capacity.storage, '5Gi');
});
