import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Volume } from '#api/domain/volume.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { DiskRefused, type IncomingVolumes, type Preparation } from '#node/volumes-port.ts';
import {
  aLocalVolume,
  aScene,
  aVmi,
  DOMAIN_ID,
  hasProgram,
  isRoot,
  readyVolume,
  type VolumesScene,
} from './testing/volumes-scene.ts';

const MI = 2 ** 20;
const OTHER_ID = '6f3c0a0e-5f43-4f6f-8a53-6d7a39d3b1c4';
const GUEST_USER = { uid: 64_055, gid: 64_055 };
const INCOMING = 'selfsame.io/incoming-node';
const LEFTOVER = 'selfsame.io/leftover-node';
const CLAIMED: Volume = { name: 'root', persistentVolumeClaim: { claimName: 'data' } };
const qemuImg = hasProgram('qemu-img') ? {} : { skip: 'qemu-img is not installed' };

function whyNoLoops(): string | false {
  if (!isRoot) return 'only root may make loop devices';
  try {
    execFileSync('losetup', ['--find'], { stdio: 'pipe' });
    return false;
  } catch {
    return 'this machine has no loop devices';
  }
}

/** Every volume is a disk of the guest. */
function aGuest(...volumes: Volume[]): Stored<VirtualMachineInstance> {
  const vmi = aVmi(volumes);
  const disks = volumes.map(({ name }) => ({ name }));
  return { ...vmi, spec: { ...vmi.spec, domain: { ...vmi.spec.domain, devices: { disks } } } };
}

/** One of node-2, with notes. */
function away(
  annotations: Record<string, string>,
  wish: Parameters<typeof aLocalVolume>[0] = {},
): Stored<PersistentVolume> {
  const volume = aLocalVolume({ node: 'node-2', ...wish });
  return {
    ...volume,
    metadata: { ...volume.metadata, annotations: { ...volume.metadata.annotations, ...annotations } },
  };
}

const moving = (bytes: number, overlay = false, name = 'root'): IncomingVolumes => ({
  moving: new Map([[name, { bytes, overlay }]]),
  contents: new Map(),
});
const told = (prepared: Preparation) => (prepared.is === 'ready' ? 'ready' : `${prepared.is} ${prepared.reason}`);
const directoryOf = (scene: VolumesScene) => join(scene.host.nodeDir, 'volumes', 'pvc-1');

/** As an earlier guest, or an earlier try, left it. */
function leave(scene: VolumesScene): void {
  mkdirSync(join(directoryOf(scene), 'state', 'tpm'), { recursive: true });
  writeFileSync(join(directoryOf(scene), 'state', 'tpm', 'permall'), 'old');
  writeFileSync(join(directoryOf(scene), 'disk.img'), 'old');
  writeFileSync(join(directoryOf(scene), 'disk.format'), 'qcow2\n');
}

describe('a volume that its guest brings along', () => {
  const rooms: Record<string, { freeBytes: number; usedBytes?: number; want: string }> = {
    'is refused where there is no room for it': { freeBytes: MI - 1, usedBytes: MI, want: 'failed NoSpaceLeft' },
    'needs no more room than it takes at the source': { freeBytes: MI, usedBytes: MI, want: 'ready' },
    'needs no more room than it is large': { freeBytes: 4 * MI, usedBytes: 5 * MI, want: 'ready' },
    'is tried where nobody knows how much it takes': { freeBytes: 0, want: 'ready' },
  };
  for (const [what, { freeBytes, usedBytes, want }] of Object.entries(rooms)) {
    it(what, async () => {
      await using scene = aScene();
      scene.bind('data', away({ [INCOMING]: 'node-1' }));
      const volumes = await scene.open({ freeBytes: async () => freeBytes });
      const incoming = { ...moving(4 * MI), moving: new Map([['root', { bytes: 4 * MI, usedBytes, overlay: false }]]) };
      const prepared = await volumes.prepareIncoming(aGuest(CLAIMED), scene.lookups, incoming);
      assert.equal(told(prepared), want);
      if (want !== 'ready') assert.ok(!existsSync(directoryOf(scene)));
    });
  }

  it('is made anew, empty and as large as told', async () => {
    await using scene = aScene();
    scene.bind('data', away({ [INCOMING]: 'node-1' }));
    leave(scene);
    const volumes = await scene.open();

    // Its claim has asked for more since its guest began to move, or it was larger from the beginning.
    for (const bytes of [4 * MI, 12 * MI]) {
      const prepared = await volumes.prepareIncoming(aGuest(CLAIMED), scene.lookups, moving(bytes));
      const { source, readonly } = readyVolume(prepared, 'root');
      assert.deepEqual(source, { path: join(directoryOf(scene), 'disk.img'), format: 'raw' });
      assert.equal(readonly, false);
      assert.ok(readFileSync(source.path).equals(Buffer.alloc(bytes)));
      assert.deepEqual(readdirSync(directoryOf(scene)).sort(), ['disk.format', 'disk.img']);
      writeFileSync(source.path, 'of a try that was given up', { flag: 'r+' });
    }
  });

  it('is found as it is when it is at home here, and grows then', async () => {
    await using scene = aScene();
    scene.bind('data', away({ [INCOMING]: 'node-1' }));
    const volumes = await scene.open();
    const incoming = await volumes.prepareIncoming(aGuest(CLAIMED), scene.lookups, moving(4 * MI));
    const { path } = readyVolume(incoming, 'root').source;
    writeFileSync(path, 'data of the guest', { flag: 'r+' });

    scene.bind('data', aLocalVolume());
    assert.equal(await volumes.grow(aLocalVolume()), 8 * MI);
    assert.equal(readyVolume(await volumes.prepare(aGuest(CLAIMED), scene.lookups, {}), 'root').source.path, path);

    assert.ok(readFileSync(path).subarray(0, 32).includes('data of the guest'));
  });

  it('does not grow while it is on its way', async () => {
    await using scene = aScene();
    const volume = aLocalVolume();
    const volumes = await scene.open();
    const leaving = { ...volume.metadata, annotations: { ...volume.metadata.annotations, [INCOMING]: 'node-2' } };
    await assert.rejects(volumes.grow({ ...volume, metadata: leaving }), /on its way to another node/);
  });

  it('belongs to the user of guests', { skip: !isRoot && 'only root can give files' }, async () => {
    await using scene = aScene();
    scene.bind('data', away({ [INCOMING]: 'node-1' }));
    const volumes = await scene.open({ guestUser: GUEST_USER });
    const prepared = await volumes.prepareIncoming(aGuest(CLAIMED), scene.lookups, moving(4 * MI));
    const { uid, mode } = statSync(readyVolume(prepared, 'root').source.path);
    assert.deepEqual([uid, mode & 0o777], [GUEST_USER.uid, 0o600]);
  });

  const refused: Record<string, { volume: Stored<PersistentVolume>; want: string }> = {
    'it is at home here': {
      volume: away({ [INCOMING]: 'node-1' }, { node: 'node-1' }),
      want: 'failed VolumeOnThisNode',
    },
    'it goes to another node': { volume: away({ [INCOMING]: 'node-3' }), want: 'failed VolumeOnOtherNode' },
    'it does not move': { volume: away({}), want: 'failed VolumeOnOtherNode' },
    'every node reaches it': {
      volume: away({ [INCOMING]: 'node-1' }, { scope: 'shared' }),
      want: 'failed VolumeUnsupported',
    },
    'an earlier copy is about to be removed': {
      volume: away({ [INCOMING]: 'node-1', [LEFTOVER]: 'node-1' }),
      want: 'waiting LeftoverPending',
    },
  };
  for (const [name, { volume, want }] of Object.entries(refused)) {
    it(`is refused where ${name}, and nothing is touched`, async () => {
      await using scene = aScene();
      scene.bind('data', volume);
      leave(scene);
      const prepared = await (await scene.open()).prepareIncoming(aGuest(CLAIMED), scene.lookups, moving(4 * MI));
      assert.equal(told(prepared), want);
      assert.equal(readFileSync(join(directoryOf(scene), 'disk.img'), 'utf8'), 'old');
    });
  }

  it('is not given to a guest that only starts here', async () => {
    await using scene = aScene();
    scene.bind('data', away({ [INCOMING]: 'node-1' }));
    const volumes = await scene.open();
    assert.equal(told(await volumes.prepare(aGuest(CLAIMED), scene.lookups, {})), 'failed VolumeOnOtherNode');
    // And one that comes must bring it.
    const nothing = { moving: new Map(), contents: new Map() };
    const prepared = await volumes.prepareIncoming(aGuest(CLAIMED), scene.lookups, nothing);
    assert.equal(told(prepared), 'failed VolumeOnOtherNode');
  });
});

describe('other disks of a guest that comes', () => {
  it('are those of the domain, new ones in place of what an earlier try left', qemuImg, async () => {
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
      contents: new Map([['seed', Buffer.from('as it is there')]]),
    });

    assert.deepEqual(prepared, earlier);
    assert.ok(readFileSync(readyVolume(prepared, 'scratch').source.path).equals(Buffer.alloc(2 * MI)));
    assert.equal(readFileSync(readyVolume(prepared, 'seed').source.path, 'utf8'), 'as it is there');
    assert.equal(readFileSync(layer.path).includes('written by an earlier guest'), false);
    const info = JSON.parse(String(execFileSync('qemu-img', ['info', '--output=json', layer.path]))) as {
      'virtual-size': number;
      'backing-filename': string;
    };
    assert.equal(info['virtual-size'], 6 * MI);
    assert.match(info['backing-filename'], /shared\/volumes\/pvc-1\/disk\.img$/);
  });

  it('that both nodes reach stay as large as they are at the other', async () => {
    await using scene = aScene();
    scene.bind('data', aLocalVolume({ scope: 'shared' }));
    const volumes = await scene.open();
    const { path } = readyVolume(await volumes.prepare(aGuest(CLAIMED), scene.lookups, {}), 'root').source;
    writeFileSync(path, 'data of the guest', { flag: 'r+' });
    scene.bind('data', aLocalVolume({ scope: 'shared', storage: '16Mi' }));

    const nothing = { moving: new Map(), contents: new Map() };
    const there = await volumes.prepareIncoming(aGuest(CLAIMED), scene.lookups, nothing);

    assert.equal(readyVolume(there, 'root').source.path, path);
    assert.equal(statSync(path).size, 8 * MI);
    assert.ok(readFileSync(path).subarray(0, 32).includes('data of the guest'));
  });

  it('need not be there where the guest does not have them', async () => {
    await using scene = aScene();
    scene.bind('data', away({}));
    const vmi = aGuest({ name: 'scratch', emptyDisk: { capacity: '1Mi' } }, CLAIMED);
    const [scratch, root] = vmi.spec.domain.devices?.disks ?? [];
    const disks = [scratch!, { ...root!, plugged: false }];
    const without = { ...vmi, spec: { ...vmi.spec, domain: { ...vmi.spec.domain, devices: { disks } } } };
    const prepared = await (await scene.open()).prepareIncoming(without, scene.lookups, moving(MI, false, 'scratch'));
    assert.deepEqual(prepared.is === 'ready' && [...prepared.volumes.keys()], ['scratch']);
  });

  const strange: Record<string, { volume: Volume; incoming: IncomingVolumes }> = {
    'the layer of a disk that has none': { volume: CLAIMED, incoming: moving(MI, true) },
    'a whole disk for a layer': {
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
  for (const [name, { volume, incoming }] of Object.entries(strange)) {
    it(`cannot be ${name}`, async () => {
      await using scene = aScene();
      scene.bind('data', away({ [INCOMING]: 'node-1' }));
      const prepared = await (await scene.open()).prepareIncoming(aGuest(volume), scene.lookups, incoming);
      assert.equal(told(prepared), 'failed VolumeUnsupported');
      assert.equal(existsSync(directoryOf(scene)), false);
    });
  }
});

describe('a copy that counts no more', () => {
  it('is removed with all that is in it, also when asked again', async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    leave(scene);
    mkdirSync(join(scene.host.nodeDir, 'volumes', 'pvc-2'));
    for (let i = 0; i < 2; i++) await volumes.removeLeftover(away({ [LEFTOVER]: 'node-1' }));
    assert.deepEqual(readdirSync(join(scene.host.nodeDir, 'volumes')), ['pvc-2']);
  });

  const kept: Record<string, { volume: Stored<PersistentVolume>; want: RegExp }> = {
    'this node is home': { volume: away({ [LEFTOVER]: 'node-1' }, { node: 'node-1' }), want: /on this node/ },
    'its guest comes here': { volume: away({ [LEFTOVER]: 'node-1', [INCOMING]: 'node-1' }), want: /on its way/ },
    'every node reaches it': { volume: away({}, { scope: 'shared' }), want: /does not lie on a node/ },
  };
  for (const [name, { volume, want }] of Object.entries(kept)) {
    it(`is none where ${name}`, async () => {
      await using scene = aScene();
      leave(scene);
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

describe('block volumes of guests that move', { skip: whyNoLoops() }, () => {
  it('stand on what is made now, not on what an earlier try left', async () => {
    await using scene = aScene();
    scene.bind('data', away({ [INCOMING]: 'node-1' }, { mode: 'Block' }));
    const volumes = await scene.open({ guestUser: GUEST_USER });
    try {
      for (const bytes of [4 * MI, 6 * MI]) {
        const prepared = await volumes.prepareIncoming(aGuest(CLAIMED), scene.lookups, moving(bytes));
        const { path } = readyVolume(prepared, 'root').source;
        assert.equal(sizeOf(path), bytes);
        assert.equal(statSync(path).uid, GUEST_USER.uid);
        assert.equal(String(execFileSync('head', ['-c', '3', path])), '\0\0\0');
        execFileSync('dd', [`of=${path}`, 'bs=512', 'oflag=direct'], { input: 'old'.padEnd(512), stdio: 'pipe' });
        assert.equal(devicesBelow(scene).length, 1);
      }
    } finally {
      await volumes.release(DOMAIN_ID);
    }
    assert.deepEqual(devicesBelow(scene), []);
  });

  it('are not taken from under another guest of the node, and left copies wait for it', async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    const other = aGuest(CLAIMED);
    scene.bind('data', aLocalVolume({ mode: 'Block' }));
    try {
      await volumes.prepare({ ...other, metadata: { ...other.metadata, uid: OTHER_ID } }, scene.lookups, {});
      scene.bind('data', away({ [INCOMING]: 'node-1' }, { mode: 'Block' }));
      const prepared = await volumes.prepareIncoming(aGuest(CLAIMED), scene.lookups, moving(MI));
      assert.equal(told(prepared), 'waiting VolumeInUse');
      await assert.rejects(volumes.removeLeftover(away({ [LEFTOVER]: 'node-1' }, { mode: 'Block' })), DiskRefused);
      assert.ok(existsSync(join(directoryOf(scene), 'disk.img')));

      await volumes.release(OTHER_ID);
      await volumes.removeLeftover(away({ [LEFTOVER]: 'node-1' }, { mode: 'Block' }));
      assert.equal(existsSync(directoryOf(scene)), false);
    } finally {
      await volumes.release(OTHER_ID);
      await volumes.release(DOMAIN_ID);
    }
  });

  it('that both nodes reach are a device on each, and one lets go without the other', async () => {
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
      const there = readyVolume(prepared, 'root').source;
      assert.notEqual(there.path, here.path);

      await source.release(DOMAIN_ID);
      assert.deepEqual(devicesBelow(scene), [
        join(scene.dir, 'shared/volumes/pvc-1', `root_${DOMAIN_ID}.node-2.block`),
      ]);
      execFileSync('dd', [`of=${there.path}`, 'bs=512', 'oflag=direct'], { input: 'x'.padEnd(512), stdio: 'pipe' });
      // It comes back.
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

  it('that keep state are new at each coming, and the mount of an earlier one is let go', async () => {
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
      // Killed before it was let go of; then the guest comes back.
      assert.deepEqual(readdirSync(await directoryFor('second')), []);
      assert.deepEqual(readdirSync(await directoryFor('first')), ['nvram.fd']);
    } finally {
      await volumes.release(DOMAIN_ID);
    }
    assert.deepEqual(devicesBelow(scene), []);
  });
});
