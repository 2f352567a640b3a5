import assert from 'node:assert/strict';
import { loopSkipReason } from '#node/volumes/local/testing/block-support.ts';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { VmiVolume } from '#api/domain/volume.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { DiskRefusedError, type IncomingVolumes, type Preparation } from '#node/volumes/volumes-port.ts';
import {
  aLocalVolume,
  aScene,
  aVmi,
  DOMAIN_ID,
  hasProgram,
  readyVolume,
  type VolumesScene,
} from '#node/volumes/local/testing/volumes-scene.ts';

const MI = 2 ** 20;
const OTHER_ID = '6f3c0a0e-5f43-4f6f-8a53-6d7a39d3b1c4';
const INCOMING = 'selfsame.io/incoming-node';
const LEFTOVER = 'selfsame.io/leftover-node';
const CLAIMED: VmiVolume = { name: 'root', persistentVolumeClaim: { claimName: 'data' } };
const qemuImg = hasProgram('qemu-img') ? {} : { skip: 'qemu-img is not installed' };

/** Returns an instance with a disk for every volume. */
function aGuest(...volumes: VmiVolume[]): Stored<VirtualMachineInstance> {
  const vmi = aVmi(volumes);
  const disks = volumes.map(({ name }) => ({ name }));
  return { ...vmi, spec: { ...vmi.spec, domain: { ...vmi.spec.domain, devices: { disks } } } };
}

/** Returns a volume of node-2 with these annotations. */
function aRemoteVolume(
  annotations: Record<string, string>,
  options: Parameters<typeof aLocalVolume>[0] = {},
): Stored<PersistentVolume> {
  const volume = aLocalVolume({ node: 'node-2', ...options });
  return {
    ...volume,
    metadata: { ...volume.metadata, annotations: { ...volume.metadata.annotations, ...annotations } },
  };
}

const moving = (bytes: number, overlay = false, name = 'root'): IncomingVolumes => ({
  moving: new Map([[name, { bytes, overlay }]]),
  contents: new Map(),
});
const outcomeText = (prepared: Preparation) =>
  prepared.is === 'ready' ? 'ready' : `${prepared.is} ${prepared.reason}`;
const directoryOf = (scene: VolumesScene) => join(scene.host.nodeDir, 'volumes', 'pvc-1');

/** Writes data as an earlier guest or attempt left it. */
function writeLeftover(scene: VolumesScene): void {
  mkdirSync(join(directoryOf(scene), 'state', 'tpm'), { recursive: true });
  writeFileSync(join(directoryOf(scene), 'state', 'tpm', 'permall'), 'old');
  writeFileSync(join(directoryOf(scene), 'disk.img'), 'old');
  writeFileSync(join(directoryOf(scene), 'disk.format'), 'qcow2\n');
}

describe('a volume of an incoming guest', () => {
  const rooms: Record<string, { freeBytes: number; usedBytes?: number; want: string }> = {
    'is refused if there is not enough space': { freeBytes: MI - 1, usedBytes: MI, want: 'failed NoSpaceLeft' },
    'needs no more space than it uses on the source node': { freeBytes: MI, usedBytes: MI, want: 'ready' },
    'needs no more space than its size': { freeBytes: 4 * MI, usedBytes: 5 * MI, want: 'ready' },
    'is accepted if the used space is unknown': { freeBytes: 0, want: 'ready' },
  };
  for (const [what, { freeBytes, usedBytes, want }] of Object.entries(rooms)) {
    it(what, async () => {
      await using scene = aScene();
      scene.bind('data', aRemoteVolume({ [INCOMING]: 'node-1' }));
      const volumes = await scene.open({ freeBytes: async () => freeBytes });
      const incoming = { ...moving(4 * MI), moving: new Map([['root', { bytes: 4 * MI, usedBytes, overlay: false }]]) };
      const prepared = await volumes.prepareIncoming(aGuest(CLAIMED), scene.lookups, incoming);
      assert.equal(outcomeText(prepared), want);
      if (want !== 'ready') assert.ok(!existsSync(directoryOf(scene)));
    });
  }

  it('is created again, empty and with the requested size', async () => {
    await using scene = aScene();
    scene.bind('data', aRemoteVolume({ [INCOMING]: 'node-1' }));
    writeLeftover(scene);
    const volumes = await scene.open();

    // The claim was expanded after the migration began, or the volume was larger from the beginning.
    for (const bytes of [4 * MI, 12 * MI]) {
      const prepared = await volumes.prepareIncoming(aGuest(CLAIMED), scene.lookups, moving(bytes));
      const { source, readonly } = readyVolume(prepared, 'root');
      assert.deepEqual(source, { path: join(directoryOf(scene), 'disk.img'), format: 'raw' });
      assert.equal(readonly, false);
      assert.ok(readFileSync(source.path).equals(Buffer.alloc(bytes)));
      assert.deepEqual(readdirSync(directoryOf(scene)).sort(), ['disk.format', 'disk.img']);
      writeFileSync(source.path, 'of an abandoned attempt', { flag: 'r+' });
    }
  });

  it('is unchanged and grows if its data node is this node', async () => {
    await using scene = aScene();
    scene.bind('data', aRemoteVolume({ [INCOMING]: 'node-1' }));
    const volumes = await scene.open();
    const incoming = await volumes.prepareIncoming(aGuest(CLAIMED), scene.lookups, moving(4 * MI));
    const { path } = readyVolume(incoming, 'root').source;
    writeFileSync(path, 'data of the guest', { flag: 'r+' });

    scene.bind('data', aLocalVolume());
    assert.equal(await volumes.grow(aLocalVolume()), 8 * MI);
    assert.equal(readyVolume(await volumes.prepare(aGuest(CLAIMED), scene.lookups, {}), 'root').source.path, path);

    assert.ok(readFileSync(path).subarray(0, 32).includes('data of the guest'));
  });

  it('does not grow during the migration', async () => {
    await using scene = aScene();
    const volume = aLocalVolume();
    const volumes = await scene.open();
    const leaving = { ...volume.metadata, annotations: { ...volume.metadata.annotations, [INCOMING]: 'node-2' } };
    await assert.rejects(volumes.grow({ ...volume, metadata: leaving }), /is being migrated to another node/);
  });

  const refused: Record<string, { volume: Stored<PersistentVolume>; want: string }> = {
    'its data node is this node': {
      volume: aRemoteVolume({ [INCOMING]: 'node-1' }, { node: 'node-1' }),
      want: 'failed VolumeOnThisNode',
    },
    'it is being migrated to another node': {
      volume: aRemoteVolume({ [INCOMING]: 'node-3' }),
      want: 'failed VolumeOnOtherNode',
    },
    'it is not being migrated': { volume: aRemoteVolume({}), want: 'failed VolumeOnOtherNode' },
    'it is shared by all nodes': {
      volume: aRemoteVolume({ [INCOMING]: 'node-1' }, { scope: 'shared' }),
      want: 'failed VolumeUnsupported',
    },
    'an earlier copy has not been removed yet': {
      volume: aRemoteVolume({ [INCOMING]: 'node-1', [LEFTOVER]: 'node-1' }),
      want: 'waiting LeftoverPending',
    },
  };
  for (const [name, { volume, want }] of Object.entries(refused)) {
    it(`is refused without a change if ${name}`, async () => {
      await using scene = aScene();
      scene.bind('data', volume);
      writeLeftover(scene);
      const prepared = await (await scene.open()).prepareIncoming(aGuest(CLAIMED), scene.lookups, moving(4 * MI));
      assert.equal(outcomeText(prepared), want);
      assert.equal(readFileSync(join(directoryOf(scene), 'disk.img'), 'utf8'), 'old');
    });
  }

  it('is refused for a guest that starts here', async () => {
    await using scene = aScene();
    scene.bind('data', aRemoteVolume({ [INCOMING]: 'node-1' }));
    const volumes = await scene.open();
    assert.equal(outcomeText(await volumes.prepare(aGuest(CLAIMED), scene.lookups, {})), 'failed VolumeOnOtherNode');
    // An incoming guest must announce the volume as moving.
    const nothing = { moving: new Map(), contents: new Map() };
    const prepared = await volumes.prepareIncoming(aGuest(CLAIMED), scene.lookups, nothing);
    assert.equal(outcomeText(prepared), 'failed VolumeOnOtherNode');
  });
});

describe('other disks of an incoming guest', () => {
  it('are created for the domain and replace those of an earlier attempt', qemuImg, async () => {
    await using scene = aScene();
    scene.bind('base', aLocalVolume({ scope: 'shared', storage: '8Mi' }));
    const volumes = await scene.open();
    const vmi = aGuest(
      { name: 'scratch', emptyDisk: { capacity: '1Mi' } },
      { name: 'layer', ephemeral: { persistentVolumeClaim: { claimName: 'base' } } },
      { name: 'seed', cloudInitNoCloud: { userData: '#cloud-config' } },
    );
    const earlier = await volumes.prepare(vmi, scene.lookups, {});
    const layer = readyVolume(earlier, 'layer').source;
    writeFileSync(layer.path, 'written by an earlier guest', { flag: 'a' });
    writeFileSync(readyVolume(earlier, 'scratch').source.path, 'old', { flag: 'r+' });

    const prepared = await volumes.prepareIncoming(vmi, scene.lookups, {
      moving: new Map([
        ['scratch', { bytes: 2 * MI, overlay: false }],
        ['layer', { bytes: 6 * MI, overlay: true }],
      ]),
      contents: new Map([['seed', Buffer.from('content of the source node')]]),
    });

    assert.deepEqual(prepared, earlier);
    assert.ok(readFileSync(readyVolume(prepared, 'scratch').source.path).equals(Buffer.alloc(2 * MI)));
    assert.equal(readFileSync(readyVolume(prepared, 'seed').source.path, 'utf8'), 'content of the source node');
    assert.equal(readFileSync(layer.path).includes('written by an earlier guest'), false);
    const info = JSON.parse(String(execFileSync('qemu-img', ['info', '--output=json', layer.path]))) as {
      'virtual-size': number;
      'backing-filename': string;
    };
    assert.equal(info['virtual-size'], 6 * MI);
    assert.match(info['backing-filename'], /shared\/volumes\/pvc-1\/disk\.img$/);
  });

  it('that both nodes share keep their size', async () => {
    await using scene = aScene();
    scene.bind('data', aLocalVolume({ scope: 'shared' }));
    const volumes = await scene.open();
    const { path } = readyVolume(await volumes.prepare(aGuest(CLAIMED), scene.lookups, {}), 'root').source;
    writeFileSync(path, 'data of the guest', { flag: 'r+' });
    scene.bind('data', aLocalVolume({ scope: 'shared', storage: '16Mi' }));

    const nothing = { moving: new Map(), contents: new Map() };
    const prepared = await volumes.prepareIncoming(aGuest(CLAIMED), scene.lookups, nothing);

    assert.equal(readyVolume(prepared, 'root').source.path, path);
    assert.equal(statSync(path).size, 8 * MI);
    assert.ok(readFileSync(path).subarray(0, 32).includes('data of the guest'));
  });

  it('may be missing if they are not plugged', async () => {
    await using scene = aScene();
    scene.bind('data', aRemoteVolume({}));
    const vmi = aGuest({ name: 'scratch', emptyDisk: { capacity: '1Mi' } }, CLAIMED);
    const [scratch, root] = vmi.spec.domain.devices?.disks ?? [];
    const disks = [scratch!, { ...root!, plugged: false }];
    const without = { ...vmi, spec: { ...vmi.spec, domain: { ...vmi.spec.domain, devices: { disks } } } };
    const prepared = await (await scene.open()).prepareIncoming(without, scene.lookups, moving(MI, false, 'scratch'));
    assert.deepEqual(prepared.is === 'ready' && [...prepared.volumes.keys()], ['scratch']);
  });

  const unsupported: Record<string, { volume: VmiVolume; incoming: IncomingVolumes }> = {
    'the overlay of a disk that has none': { volume: CLAIMED, incoming: moving(MI, true) },
    'a whole disk for an ephemeral volume': {
      volume: { name: 'root', ephemeral: { persistentVolumeClaim: { claimName: 'data' } } },
      incoming: moving(MI),
    },
    'a file of the other node': {
      volume: { name: 'root', hostDisk: { path: '/x.img', type: 'Disk' } },
      incoming: moving(MI),
    },
    'the content of a claim': {
      volume: CLAIMED,
      incoming: { moving: new Map(), contents: new Map([['root', Buffer.from('x')]]) },
    },
  };
  for (const [name, { volume, incoming }] of Object.entries(unsupported)) {
    it(`are refused for ${name}`, async () => {
      await using scene = aScene();
      scene.bind('data', aRemoteVolume({ [INCOMING]: 'node-1' }));
      const prepared = await (await scene.open()).prepareIncoming(aGuest(volume), scene.lookups, incoming);
      assert.equal(outcomeText(prepared), 'failed VolumeUnsupported');
      assert.equal(existsSync(directoryOf(scene)), false);
    });
  }
});

describe('a leftover copy', () => {
  it('is removed recursively, and removing it again does nothing', async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    writeLeftover(scene);
    mkdirSync(join(scene.host.nodeDir, 'volumes', 'pvc-2'));
    for (let i = 0; i < 2; i++) await volumes.removeLeftover(aRemoteVolume({ [LEFTOVER]: 'node-1' }));
    assert.deepEqual(readdirSync(join(scene.host.nodeDir, 'volumes')), ['pvc-2']);
  });

  const kept: Record<string, { volume: Stored<PersistentVolume>; want: RegExp }> = {
    'its data node is this node': {
      volume: aRemoteVolume({ [LEFTOVER]: 'node-1' }, { node: 'node-1' }),
      want: /on this node/,
    },
    'its guest is being migrated here': {
      volume: aRemoteVolume({ [LEFTOVER]: 'node-1', [INCOMING]: 'node-1' }),
      want: /is being migrated to this node/,
    },
    'it is shared by all nodes': { volume: aRemoteVolume({}, { scope: 'shared' }), want: /data on a single node/ },
  };
  for (const [name, { volume, want }] of Object.entries(kept)) {
    it(`is not removed if ${name}`, async () => {
      await using scene = aScene();
      writeLeftover(scene);
      await assert.rejects((await scene.open()).removeLeftover(volume), want);
      assert.equal(readFileSync(join(directoryOf(scene), 'disk.img'), 'utf8'), 'old');
    });
  }
});

const sizeOf = (device: string) => Number(execFileSync('blockdev', ['--getsize64', device]));
const devicesBelow = ({ dir }: VolumesScene) =>
  String(execFileSync('losetup', ['--list', '--noheadings', '--output', 'BACK-FILE']))
    .split('\n')
    .filter((file) => file.startsWith(dir));

describe('block volumes of migrating guests', { skip: loopSkipReason() }, () => {
  it('use the new image, not that of an earlier attempt', async () => {
    await using scene = aScene();
    scene.bind('data', aRemoteVolume({ [INCOMING]: 'node-1' }, { mode: 'Block' }));
    const volumes = await scene.open();
    try {
      for (const bytes of [4 * MI, 6 * MI]) {
        const prepared = await volumes.prepareIncoming(aGuest(CLAIMED), scene.lookups, moving(bytes));
        const { path } = readyVolume(prepared, 'root').source;
        assert.equal(sizeOf(path), bytes);
        assert.equal(String(execFileSync('head', ['-c', '3', path])), '\0\0\0');
        execFileSync('dd', [`of=${path}`, 'bs=512', 'oflag=direct'], { input: 'old'.padEnd(512), stdio: 'pipe' });
        assert.equal(devicesBelow(scene).length, 1);
      }
    } finally {
      await volumes.release(DOMAIN_ID);
    }
    assert.deepEqual(devicesBelow(scene), []);
  });

  it('are not replaced or removed while another guest of the node uses them', async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    const other = aGuest(CLAIMED);
    scene.bind('data', aLocalVolume({ mode: 'Block' }));
    try {
      await volumes.prepare({ ...other, metadata: { ...other.metadata, uid: OTHER_ID } }, scene.lookups, {});
      scene.bind('data', aRemoteVolume({ [INCOMING]: 'node-1' }, { mode: 'Block' }));
      const prepared = await volumes.prepareIncoming(aGuest(CLAIMED), scene.lookups, moving(MI));
      assert.equal(outcomeText(prepared), 'waiting VolumeInUse');
      await assert.rejects(
        volumes.removeLeftover(aRemoteVolume({ [LEFTOVER]: 'node-1' }, { mode: 'Block' })),
        DiskRefusedError,
      );
      assert.ok(existsSync(join(directoryOf(scene), 'disk.img')));

      await volumes.release(OTHER_ID);
      await volumes.removeLeftover(aRemoteVolume({ [LEFTOVER]: 'node-1' }, { mode: 'Block' }));
      assert.equal(existsSync(directoryOf(scene)), false);
    } finally {
      await volumes.release(OTHER_ID);
      await volumes.release(DOMAIN_ID);
    }
  });

  it('that both nodes share have a device on each, and are detached independently', async () => {
    await using scene = aScene();
    scene.bind('data', aLocalVolume({ mode: 'Block', scope: 'shared' }));
    const nodeDir = join(scene.dir, 'node-2');
    mkdirSync(nodeDir);
    const source = await scene.open();
    const target = await scene.open({ nodeName: 'node-2', nodeDir });
    const nothing = { moving: new Map(), contents: new Map() };
    try {
      const here = readyVolume(await source.prepare(aGuest(CLAIMED), scene.lookups, {}), 'root').source;
      const prepared = await target.prepareIncoming(aGuest(CLAIMED), scene.lookups, nothing);
      const targetSource = readyVolume(prepared, 'root').source;
      assert.notEqual(targetSource.path, here.path);

      await source.release(DOMAIN_ID);
      assert.deepEqual(devicesBelow(scene), [
        join(scene.dir, 'shared/volumes/pvc-1', `root_${DOMAIN_ID}.node-2.block`),
      ]);
      execFileSync('dd', [`of=${targetSource.path}`, 'bs=512', 'oflag=direct'], {
        input: 'x'.padEnd(512),
        stdio: 'pipe',
      });
      // The guest migrates back.
      await source.prepareIncoming(aGuest(CLAIMED), scene.lookups, nothing);
      await target.releaseUnwanted(() => false);
      assert.deepEqual(devicesBelow(scene), [
        join(scene.dir, 'shared/volumes/pvc-1', `root_${DOMAIN_ID}.node-1.block`),
      ]);
    } finally {
      await source.release(DOMAIN_ID);
      await target.release(DOMAIN_ID);
    }
  });

  it('with persistent state are new for each migration, and an earlier mount is removed', async () => {
    await using scene = aScene();
    scene.bind('first', aLocalVolume({ mode: 'Block', storage: '10Mi' }));
    scene.bind('second', aLocalVolume({ mode: 'Block', storage: '10Mi', name: 'pvc-2' }));
    const volumes = await scene.open();
    const directoryFor = async (claim: string) => {
      const prepared = await volumes.prepareState(DOMAIN_ID, claim, scene.lookups, {});
      if (prepared.is !== 'ready') throw new Error(prepared.message);
      return prepared.directory;
    };
    try {
      writeFileSync(join(await directoryFor('first'), 'nvram.fd'), 'old');
      // The agent was killed before the release; then the guest migrates back.
      assert.deepEqual(readdirSync(await directoryFor('second')), []);
      assert.deepEqual(readdirSync(await directoryFor('first')), ['nvram.fd']);
    } finally {
      await volumes.release(DOMAIN_ID);
    }
    assert.deepEqual(devicesBelow(scene), []);
  });
});
