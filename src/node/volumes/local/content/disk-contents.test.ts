import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { UPLOAD_ANNOTATION, type DiskHeader } from '#api/storage/disk-stream.ts';
import type { Volumes } from '#node/volumes/volumes-port.ts';
import {
  aLocalVolume,
  aScene,
  aVmi,
  aVolume,
  hasProgram,
  isRoot,
  readyVolume,
  type VolumesScene,
} from '#node/volumes/local/testing/volumes-scene.ts';

const MIB = 1024 * 1024;
const UNUSED = { useOf: () => undefined };
const NO_QEMU_IMG = hasProgram('qemu-img') ? false : 'qemu-img is not installed';

async function* inPieces(content: Buffer, size = 100_000) {
  for (let at = 0; at < content.length; at += size) yield content.subarray(at, at + size);
}
async function readAll(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of chunks) pieces.push(Buffer.from(piece));
  return Buffer.concat(pieces);
}
function contentsOf({ contents }: Volumes) {
  assert.ok(contents);
  return contents;
}
/** Adds a bound claim that waits for its content. */
function addAwaitingClaim(scene: VolumesScene, volume = aLocalVolume()): void {
  scene.bind('data', volume);
  scene.claims.get('data')!.metadata.annotations = { [UPLOAD_ANNOTATION]: 'true' };
}
async function upload(scene: VolumesScene, volumes: Volumes, header: DiskHeader, chunks: AsyncIterable<Buffer>) {
  const opened = await contentsOf(volumes).replace('data', scene.lookups, UNUSED);
  try {
    await opened.receive(header, chunks, {});
  } finally {
    await opened.close();
  }
}
const filesOf = (scene: VolumesScene) => readdirSync(join(scene.host.nodeDir, 'volumes', 'pvc-1')).sort();
const imageOf = (scene: VolumesScene) => join(scene.host.nodeDir, 'volumes', 'pvc-1', 'disk.img');
const prepare = (scene: VolumesScene, volumes: Volumes) =>
  volumes.prepare(aVmi([{ name: 'd', persistentVolumeClaim: { claimName: 'data' } }]), scene.lookups, {});

/** Returns data at both ends with a hole between them. */
function aDisk(): Buffer {
  const disk = Buffer.alloc(3 * MIB);
  disk.write('begins', 0);
  disk.write('ends', disk.length - 4);
  return disk;
}

describe('the content of a disk', () => {
  it('is imported as raw, grown to the size of its volume, and exported', async () => {
    await using scene = aScene();
    addAwaitingClaim(scene);
    const volumes = await scene.open();
    await upload(scene, volumes, { size: 3 * MIB, format: 'raw' }, inPieces(aDisk()));
    assert.deepEqual(filesOf(scene), ['disk.format', 'disk.img']);
    const { size, blocks } = statSync(imageOf(scene));
    assert.equal(size, 8 * MIB);
    assert.ok(blocks * 512 < 2 * MIB, 'holes stay holes');

    const content = await contentsOf(volumes).open('data', scene.lookups, UNUSED);
    assert.deepEqual(content.header, {
      size: 8 * MIB,
      format: 'raw',
      virtualSize: 8 * MIB,
      allocatedBytes: statSync(imageOf(scene)).blocks * 512,
    });
    const read = await readAll(content.chunks());
    await content.close();
    assert.ok(read.equals(Buffer.concat([aDisk(), Buffer.alloc(5 * MIB)])));
  });

  it('is converted from qcow2 to raw', { skip: NO_QEMU_IMG }, async () => {
    await using scene = aScene();
    addAwaitingClaim(scene);
    const volumes = await scene.open();
    const [raw, packed] = [join(scene.dir, 'a.raw'), join(scene.dir, 'a.qcow2')];
    writeFileSync(raw, aDisk());
    execFileSync('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', raw, packed]);
    const content = readFileSync(packed);
    await upload(scene, volumes, { size: content.length, format: 'qcow2' }, inPieces(content));
    assert.deepEqual(filesOf(scene), ['disk.format', 'disk.img']);
    assert.ok(
      readFileSync(imageOf(scene))
        .subarray(0, 3 * MIB)
        .equals(aDisk()),
    );
    assert.equal(readFileSync(imageOf(scene)).length, 8 * MIB);
  });

  it('is refused if the disk in a qcow2 image is larger than the volume', { skip: NO_QEMU_IMG }, async () => {
    await using scene = aScene();
    addAwaitingClaim(scene);
    const volumes = await scene.open();
    const packed = join(scene.dir, 'a.qcow2');
    execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', packed, '1G']);
    const content = readFileSync(packed);
    const sent = upload(scene, volumes, { size: content.length, format: 'qcow2' }, inPieces(content));
    await assert.rejects(sent, /the disk has 1073741824 bytes; expected at most 8388608/);
    assert.deepEqual(filesOf(scene), []);
  });

  const refused: Record<string, { header: DiskHeader; content: Buffer; message: RegExp }> = {
    'more bytes than the volume has': {
      header: { size: 8 * MIB + 1, format: 'raw' },
      content: Buffer.alloc(0),
      message: /the content has 8388609 bytes, and the volume has 8388608/,
    },
    'fewer bytes than announced': {
      header: { size: 10, format: 'raw' },
      content: Buffer.from('short'),
      message: /received 5 bytes; expected 10/,
    },
    'a qcow2 image that is announced as raw': {
      header: { size: 512, format: 'raw' },
      content: aQcow2Header(),
      message: /received a qcow2 image; expected raw/,
    },
    'a raw disk that is announced as qcow2': {
      header: { size: 512, format: 'qcow2' },
      content: Buffer.alloc(512, 1),
      message: /received a raw image; expected qcow2/,
    },
    'a qcow2 image with a backing file': {
      header: { size: 512, format: 'qcow2' },
      content: aQcow2Header({ backing: 256n }),
      message: /it names a backing file/,
    },
    'a qcow2 image that is cut off': {
      header: { size: 512, format: 'qcow2' },
      content: aQcow2Header({ l1Offset: 0x30000n }),
      message: /Cannot use the upload: it is incomplete: its L1 table ends at byte 196616, and the file has 512 bytes/,
    },
  };
  for (const [title, { header, content, message }] of Object.entries(refused)) {
    it(`refuses ${title} and does not change the disk`, async () => {
      await using scene = aScene();
      addAwaitingClaim(scene);
      const volumes = await scene.open();
      await upload(scene, volumes, { size: 3 * MIB, format: 'raw' }, inPieces(aDisk()));
      await assert.rejects(upload(scene, volumes, header, inPieces(content)), message);
      assert.deepEqual(filesOf(scene), ['disk.format', 'disk.img']);
      assert.equal(readFileSync(imageOf(scene)).toString('latin1', 0, 6), 'begins');
    });
  }

  it('leaves nothing behind if the upload is interrupted', async () => {
    await using scene = aScene();
    addAwaitingClaim(scene);
    const volumes = await scene.open();
    async function* broken() {
      yield Buffer.from('half');
      throw new Error('the connection broke');
    }
    await assert.rejects(upload(scene, volumes, { size: 10, format: 'raw' }, broken()), /the connection broke/);
    assert.deepEqual(filesOf(scene), []);
  });

  it('does not fill the file system', async () => {
    await using scene = aScene();
    addAwaitingClaim(scene);
    const volumes = await scene.open({ freeBytes: async () => 1000 });
    const sent = upload(scene, volumes, { size: 5, format: 'raw' }, inPieces(Buffer.from('bytes')));
    await assert.rejects(sent, /node "node-1" has 1000 B of free space there and needs 128\.0 MiB; free space/);
  });

  it('is not replaced if the claim does not wait for content', async () => {
    await using scene = aScene();
    scene.bind('data', aLocalVolume());
    const volumes = await scene.open();
    await assert.rejects(contentsOf(volumes).replace('data', scene.lookups, UNUSED), {
      name: 'DiskRefusedError',
      message: 'persistentvolumeclaim "data" does not wait for content (selfsame.io/upload: "true")',
    });
  });

  it('can have several readers or one writer, and neither while a pod uses it', async () => {
    await using scene = aScene();
    addAwaitingClaim(scene);
    const volumes = await scene.open();
    const contents = contentsOf(volumes);
    const inUse = { useOf: () => 'it is in use by pod "p"' };
    await assert.rejects(contents.open('data', scene.lookups, inUse), {
      name: 'DiskRefusedError',
      message: /by pod "p"/,
    });
    const content = await contents.open('data', scene.lookups, UNUSED);
    const other = await contents.open('data', scene.lookups, UNUSED);
    const replace = () => contents.replace('data', scene.lookups, UNUSED);
    await assert.rejects(replace(), /is being exported or imported/);
    await other.close();
    await assert.rejects(replace(), /is being exported or imported/);
    scene.claims.get('data')!.metadata.annotations = {};
    const waits = await prepare(scene, volumes);
    assert.deepEqual([waits.is, waits.is !== 'ready' && waits.reason], ['waiting', 'VolumeInTransfer']);
    await content.close();
    assert.equal(readyVolume(await prepare(scene, volumes), 'd').source.format, 'raw');
    addAwaitingClaim(scene);
    const upload = await replace();
    await assert.rejects(contents.open('data', scene.lookups, UNUSED), /is being exported or imported/);
    await upload.close();
    await (await contents.open('data', scene.lookups, UNUSED)).close();
  });

  it('must be imported before the first start', async () => {
    await using scene = aScene();
    addAwaitingClaim(scene);
    const volumes = await scene.open();
    const waits = await prepare(scene, volumes);
    assert.deepEqual([waits.is, waits.is !== 'ready' && waits.reason], ['waiting', 'UploadPending']);
    await upload(scene, volumes, { size: 3 * MIB, format: 'raw' }, inPieces(aDisk()));
    scene.claims.get('data')!.metadata.annotations = {};
    assert.equal(readyVolume(await prepare(scene, volumes), 'd').source.path, imageOf(scene));
  });

  it('is refused if the disk was written to meanwhile', async () => {
    await using scene = aScene();
    scene.bind('data', aLocalVolume());
    const volumes = await scene.open();
    const content = await contentsOf(volumes).open('data', scene.lookups, UNUSED);
    const chunks = content.chunks()[Symbol.asyncIterator]();
    await chunks.next();
    writeFileSync(imageOf(scene), 'from elsewhere', { flag: 'r+' });
    await assert.rejects(async () => {
      while ((await chunks.next()).done !== true);
    }, /it was written to meanwhile/);
    await content.close();
  });

  it('of a block volume can be replaced', { skip: isRoot ? false : 'only root has block volumes' }, async () => {
    await using scene = aScene();
    addAwaitingClaim(scene, aLocalVolume({ mode: 'Block' }));
    await upload(scene, await scene.open(), { size: 3 * MIB, format: 'raw' }, inPieces(aDisk()));
    assert.deepEqual(filesOf(scene), ['disk.img']);
  });

  const unsupported: Record<string, { bind: (scene: VolumesScene) => void; message: RegExp }> = {
    'a volume of an administrator': {
      bind: (scene) => scene.bind('data', aVolume({ hostPath: { path: '/somewhere' } })),
      message: /it does not belong to selfsame\.io\/local/,
    },
    'a volume of another node': {
      bind: (scene) => scene.bind('data', aLocalVolume({ node: 'node-2' })),
      message: /is on node "node-2"/,
    },
    'a missing claim': { bind: () => undefined, message: /persistentvolumeclaim "data" not found/ },
  };
  for (const [title, { bind, message }] of Object.entries(unsupported)) {
    it(`is refused for ${title}`, async () => {
      await using scene = aScene();
      bind(scene);
      await assert.rejects(contentsOf(await scene.open()).open('data', scene.lookups, UNUSED), message);
    });
  }
});

function aQcow2Header({ backing = 0n, l1Offset = 0n }: { backing?: bigint; l1Offset?: bigint } = {}): Buffer {
  const header = Buffer.alloc(512);
  header.writeUInt32BE(0x514649fb, 0);
  header.writeUInt32BE(3, 4);
  header.writeBigUInt64BE(backing, 8);
  header.writeUInt32BE(16, 20);
  header.writeBigUInt64BE(BigInt(MIB), 24);
  header.writeUInt32BE(1, 36);
  header.writeBigUInt64BE(l1Offset, 40);
  return header;
}
