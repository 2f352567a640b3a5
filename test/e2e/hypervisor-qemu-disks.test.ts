/** Disks of real QEMU guests that cannot be opened or written: the hypervisor names the disk and the cause. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { newUid } from '#lib/ids.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { echoDisk, writeWritingDisk, WRITTEN_SECTOR_AT } from '#node/hypervisor/qemu/testing/echo-guest.ts';
import { isSandboxed, qemuScene, qemuSkipReason, type QemuScene } from '#node/hypervisor/qemu/testing/qemu-scene.ts';
import { waitUntil } from '#node/hypervisor/testing/scene.ts';

async function withScene(run: (scene: QemuScene) => Promise<void>): Promise<void> {
  const scene = await qemuScene();
  try {
    await run(scene);
  } finally {
    await scene.end();
  }
}

describe('qemu: disks with errors', { skip: qemuSkipReason(), timeout: 60_000 }, () => {
  it('names the disk that another guest has, and one that is damaged', async () => {
    await withScene(async (scene) => {
      const { hypervisor } = scene;
      const definition = await scene.definitionWithDisks();
      await hypervisor.create(definition, { paused: true });
      await assert.rejects(hypervisor.create({ ...definition, id: newUid() }, { paused: true }), (error) => {
        assert.ok(error instanceof HypervisorError);
        assert.deepEqual([error.disk?.deviceId, error.disk?.is, error.permanent], ['disk-first', 'inUse', false]);
        return true;
      });
      await hypervisor.destroy(definition.id);

      const disks = definition.devices.filter((device) => device.type === 'disk' && device.source !== undefined);
      const second = disks.find(({ id }) => id === 'disk-second');
      assert.ok(second?.type === 'disk' && second.source !== undefined);
      await truncate(second.source.path, 50);
      const source = { ...second.source, format: 'qcow2' as const };
      const devices = definition.devices.map((device) => (device === second ? { ...second, source } : device));
      await assert.rejects(hypervisor.create({ ...definition, id: newUid(), devices }, { paused: true }), (error) => {
        assert.ok(error instanceof HypervisorError);
        assert.deepEqual([error.disk?.deviceId, error.disk?.is, error.permanent], ['disk-second', 'damaged', true]);
        return true;
      });
    });
  });

  it(
    'names the disk that has no space, and continues when there is some',
    { skip: !isSandboxed && 'requires root' },
    async () => {
      await withScene(async (scene) => {
        const { hypervisor } = scene;
        const dir = join(scene.nodeDir, 'small');
        await mkdir(dir, { mode: 0o711 });
        execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k,mode=711', 'tmpfs', dir]);
        try {
          const [path, filler] = [join(dir, 'disk.img'), join(dir, 'filler')];
          await writeWritingDisk(path);
          await writeFile(filler, Buffer.alloc(2 ** 20)).catch(() => undefined);
          const plain = scene.definition();
          const devices = plain.devices.filter(({ type }) => type !== 'interface');
          const definition = { ...plain, devices: [...devices, echoDisk(path)] };
          await hypervisor.create(definition);

          const { current } = await waitUntil(hypervisor, definition.id, (domain) => domain.current.state === 'paused');
          const failedDisks = [{ deviceId: 'disk-echo', cause: 'noSpace' }];
          assert.deepEqual(current, { state: 'paused', why: 'ioError', failedDisks });
          const next = await scene.reopen();
          await next.adopt();
          assert.deepEqual(next.get(definition.id)?.current, current, 'the next agent knows the cause, too');

          await rm(filler);
          await next.resume(definition.id);
          await waitUntil(next, definition.id, (domain) => domain.current.state === 'running');
          // QEMU completes its requests before it quits.
          await next.destroy(definition.id);
          assert.equal((await readFile(path)).readUInt16LE(WRITTEN_SECTOR_AT + 510), 0xaa55);
        } finally {
          execFileSync('umount', ['--lazy', dir]);
        }
      });
    },
  );
});
