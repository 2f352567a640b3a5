import assert from 'node:assert/strict';
import { test } from 'node:test';
import { INCOMING_NODE_ANNOTATION } from '#api/names.ts';
import type { Preparation, VolumeLookups } from '#node/volumes/volumes-port.ts';
import { SimulatedDisks, SimulatedStorage } from './simulated-disks.ts';
import type { Loose } from './test-api.ts';

const MOVING = { bytes: 1, overlay: false };

function aVolume({ targetNode, scope = 'node' }: { targetNode?: string; scope?: string } = {}): Loose {
  return {
    metadata: { name: 'pv-a', ...(targetNode && { annotations: { [INCOMING_NODE_ANNOTATION]: targetNode } }) },
    spec: { claimRef: { uid: 'c' }, csi: { volumeAttributes: { scope } } },
  };
}

function lookupsOf(volume: Loose): VolumeLookups {
  const claim: Loose = { metadata: { uid: 'c' }, spec: { volumeName: 'pv-a' }, status: { phase: 'Bound' } };
  return {
    claim: async () => claim,
    volume: async () => volume,
    secret: async () => undefined,
    configMap: async () => undefined,
  };
}

const VMI: Loose = {
  metadata: { name: 'vm' },
  spec: {
    volumes: [{ name: 'root', persistentVolumeClaim: { claimName: 'a' } }, { name: 'init' }, { name: 'scratch' }],
  },
};

function pathsOf(preparation: Preparation): (string | undefined)[] {
  assert.equal(preparation.is, 'ready');
  const { volumes } = preparation;
  return ['root', 'init', 'scratch'].map((name) => volumes.get(name)?.source.path);
}

const INCOMING = {
  moving: new Map([['root', MOVING]]),
  contents: new Map([['init', Buffer.from('user-data')]]),
};

test('disks that move are created at another path, and their content is on the target only', async () => {
  const storage = new SimulatedStorage();
  const [source, target] = [new SimulatedDisks(storage, 'n1'), new SimulatedDisks(storage, 'n2')];
  const lookups = lookupsOf(aVolume({ targetNode: 'n2' }));
  const [sourcePath] = pathsOf(await source.volumes().prepare(VMI, lookups, {}));
  source.write('pv-a', 'old');
  target.write('pv-a', 'of an earlier try');

  const paths = pathsOf(await target.volumes().prepareIncoming(VMI, lookups, INCOMING));

  assert.equal(sourcePath, '/simulated/pv-a');
  assert.deepEqual(paths, ['/simulated/n2/pv-a', '/simulated/n2/init', '/simulated/scratch']);
  assert.equal(target.read('pv-a'), '');
  target.writeDisk('/simulated/n2/pv-a', source.readDisk('/simulated/pv-a') ?? '');
  assert.deepEqual([source.read('pv-a'), target.read('pv-a')], ['old', 'old']);
  assert.deepEqual(target.createdVolumes, ['pv-a']);

  await source.volumes().removeLeftover(aVolume());
  assert.deepEqual([source.read('pv-a'), target.read('pv-a')], [undefined, 'old']);
  assert.deepEqual(source.removedLeftovers, ['pv-a']);
});

test('a volume is created only on the node that it moves to', async () => {
  const disks = new SimulatedDisks(new SimulatedStorage(), 'n1');
  for (const volume of [aVolume(), aVolume({ targetNode: 'n2' })]) {
    await assert.rejects(
      disks.volumes().prepareIncoming(VMI, lookupsOf(volume), INCOMING),
      /Cannot create volume "pv-a"/,
    );
  }
  assert.equal(disks.read('pv-a'), undefined);
});

test('volumes that all nodes share keep their path', async () => {
  const shared = new SimulatedStorage();
  const [source, target] = [new SimulatedDisks(shared, 'n1'), new SimulatedDisks(shared, 'n2')];
  const lookups = lookupsOf(aVolume({ scope: 'shared' }));
  await source.volumes().prepare(VMI, lookups, {});
  source.write('pv-a', 'content');

  const paths = pathsOf(
    await target.volumes().prepareIncoming(VMI, lookups, { moving: new Map(), contents: new Map() }),
  );

  assert.equal(paths[0], '/simulated/pv-a');
  assert.equal(target.readDisk('/simulated/pv-a'), 'content');
});

test('a block volume that a second node mounts before the first has released it is detected', async () => {
  const shared = new SimulatedStorage();
  const [first, second] = [new SimulatedDisks(shared, 'n1').volumes(), new SimulatedDisks(shared, 'n2').volumes()];
  const volume = aVolume({ scope: 'shared' });
  const lookups = lookupsOf({ ...volume, spec: { ...volume.spec, volumeMode: 'Block' } });

  await first.prepareState('guest', 'a', lookups, {});
  await first.release('another guest');
  await first.releaseUnwanted((domain) => domain === 'guest');
  await first.prepareState('guest', 'a', lookups, {});
  assert.deepEqual(shared.doubleMounts, []);
  await first.release('guest');
  await second.prepareState('guest', 'a', lookups, {});
  assert.deepEqual(shared.doubleMounts, []);
  await first.prepareState('guest', 'a', lookups, {});
  assert.deepEqual(shared.doubleMounts, ['pv-a on n2 and n1']);
});
