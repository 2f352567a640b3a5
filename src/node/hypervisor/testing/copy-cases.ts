/** Copies of disks while the guest keeps running. */
import assert from 'node:assert/strict';
import { newUid } from '#lib/ids.ts';
import { HypervisorError, type CopyState, type DiskCopy, type Hypervisor } from '#node/hypervisor/hypervisor.ts';
import { hasEnded, stateOf, waitUntil, type Cases, type ConformanceScene } from '#node/hypervisor/testing/scene.ts';

export const copyCases: Cases = {
  'copies several disks while the guest runs, and reports when they are done': async (scene) => {
    const { hypervisor } = scene;
    const { id, copies, ids } = await aGuest(scene);

    await hypervisor.startCopies(id, copies);

    for (const copyId of ids) assert.deepEqual(await waitForCopy(hypervisor, id, copyId), { state: 'done' });
    assert.equal(stateOf(hypervisor, id), 'running');
  },

  'copies disks of a paused guest': async (scene) => {
    const { id, copies, ids } = await aGuest(scene, { paused: true });
    await scene.hypervisor.startCopies(id, copies);
    assert.deepEqual(await waitForCopy(scene.hypervisor, id, ids[0]), { state: 'done' });
    assert.equal(stateOf(scene.hypervisor, id), 'paused');
  },

  'starts no copy twice': async (scene) => {
    const { id, copies, ids } = await aGuest(scene);
    const hypervisor = await slow(scene);
    await hypervisor.startCopies(id, copies);

    await hypervisor.startCopies(id, copies);
    await hypervisor.startCopies(id, copies.slice(0, 1));

    for (const copyId of ids) assert.equal((await hypervisor.copyState(id, copyId))?.state, 'copying');
  },

  'does not start a finished copy again': async (scene) => {
    const { hypervisor } = scene;
    const { id, copies, ids } = await aGuest(scene);
    await hypervisor.startCopies(id, copies);
    for (const copyId of ids) await waitForCopy(hypervisor, id, copyId);

    await hypervisor.startCopies(id, copies);

    for (const copyId of ids) assert.deepEqual(await hypervisor.copyState(id, copyId), { state: 'done' });
  },

  'refuses to add a copy to an earlier set': async (scene) => {
    const { hypervisor } = scene;
    const { id, copies, ids } = await aGuest(scene);
    await hypervisor.startCopies(id, copies.slice(0, 1));
    await waitForCopy(hypervisor, id, ids[0]);

    await assert.rejects(hypervisor.startCopies(id, copies), HypervisorError);

    assert.equal(await hypervisor.copyState(id, ids[1]), undefined);
  },

  'reports a copy until endCopy, after which it can be made again': async (scene) => {
    const { hypervisor } = scene;
    const { id, copies, ids } = await aGuest(scene);
    await hypervisor.startCopies(id, copies);
    await waitForCopy(hypervisor, id, ids[0]);
    assert.deepEqual(await hypervisor.copyState(id, ids[0]), { state: 'done' });

    for (const copyId of ids) {
      await hypervisor.endCopy(id, copyId);
      await hypervisor.endCopy(id, copyId);
      assert.equal(await hypervisor.copyState(id, copyId), undefined);
    }

    const again = await Promise.all(copies.map(async (copy) => ({ ...copy, path: await scene.copyFile() })));
    await hypervisor.startCopies(id, again);
    assert.deepEqual(await waitForCopy(hypervisor, id, ids[1]), { state: 'done' });
  },

  'cancels one running copy and keeps the others': async (scene) => {
    const { id, copies, ids } = await aGuest(scene);
    const hypervisor = await slow(scene);
    await hypervisor.startCopies(id, copies);

    await hypervisor.endCopy(id, ids[0]);

    assert.equal(await hypervisor.copyState(id, ids[0]), undefined);
    const left = await hypervisor.copyState(id, ids[1]);
    assert.ok(left?.state === 'copying' && left.doneBytes < left.totalBytes);
    assert.equal(stateOf(hypervisor, id), 'running');
  },

  'names the disk that cannot be copied, and copies none of the set': async (scene) => {
    const { hypervisor } = scene;
    const { id, copies, ids } = await aGuest(scene);
    for (const deviceId of ['disk-missing', 'disk-tray', 'nic-default']) {
      const impossible = copies.map((copy, i) => (i === 1 ? { ...copy, deviceId } : copy));
      await assert.rejects(
        hypervisor.startCopies(id, impossible),
        (error) => error instanceof HypervisorError && error.message.includes(deviceId),
      );
      for (const copyId of ids) assert.equal(await hypervisor.copyState(id, copyId), undefined);
    }
    await hypervisor.startCopies(id, copies);
    assert.deepEqual(await waitForCopy(hypervisor, id, ids[0]), { state: 'done' });
  },

  'has no copies of unknown guests': async ({ hypervisor, copyFile }) => {
    const [id, path] = [newUid(), await copyFile()];
    const copies = [{ copyId: 'a', deviceId: 'disk-first', path }];
    await assert.rejects(hypervisor.startCopies(id, copies), HypervisorError);
    assert.equal(await hypervisor.copyState(id, 'a'), undefined);
    await hypervisor.endCopy(id, 'a');
  },

  'finds copies that an earlier process started': async (scene) => {
    const { id, copies, ids } = await aGuest(scene);
    const before = await slow(scene);
    await before.startCopies(id, copies);

    const next = await scene.reopen();
    await next.adopt();

    await next.startCopies(id, copies);
    for (const copyId of ids) assert.equal((await next.copyState(id, copyId))?.state, 'copying');
    await next.endCopy(id, ids[0]);
    assert.equal(await next.copyState(id, ids[0]), undefined);
  },

  'finds finished copies of an earlier process': async (scene) => {
    const { id, copies, ids } = await aGuest(scene);
    await scene.hypervisor.startCopies(id, copies);
    await waitForCopy(scene.hypervisor, id, ids[0]);

    const next = await scene.reopen();
    await next.adopt();

    for (const copyId of ids) assert.deepEqual(await waitForCopy(next, id, copyId), { state: 'done' });
  },

  'reports a copy as failed if its guest ended before': async (scene) => {
    const { id, copies, ids } = await aGuest(scene);
    const hypervisor = await slow(scene);
    await hypervisor.startCopies(id, copies);

    await scene.killGuest(id);
    await waitUntil(hypervisor, id, hasEnded);

    for (const copyId of ids) assert.equal((await hypervisor.copyState(id, copyId))?.state, 'failed');
    const next = await scene.reopen();
    await next.adopt();
    assert.equal((await next.copyState(id, ids[0]))?.state, 'failed');
    await next.endCopy(id, ids[0]);
    assert.equal(await next.copyState(id, ids[0]), undefined);
    await next.remove(id);
    assert.equal(await next.copyState(id, ids[1]), undefined);
  },

  'switches off a guest whose disks are being copied': async (scene) => {
    const { id, copies, ids } = await aGuest(scene);
    const hypervisor = await slow(scene);
    await hypervisor.startCopies(id, copies);

    await hypervisor.destroy(id);

    const current = hypervisor.get(id)?.current;
    assert.equal(current?.state === 'ended' && current.how, 'destroyed');
    assert.equal((await hypervisor.copyState(id, ids[0]))?.state, 'failed');
  },

  'still reports a finished copy after its guest has ended': async (scene) => {
    const { hypervisor } = scene;
    const { id, copies, ids } = await aGuest(scene);
    await hypervisor.startCopies(id, copies);
    await waitForCopy(hypervisor, id, ids[0]);

    await hypervisor.destroy(id);

    assert.deepEqual(await hypervisor.copyState(id, ids[0]), { state: 'done' });
    await assert.rejects(
      hypervisor.startCopies(id, [{ copyId: newUid(), deviceId: 'disk-first', path: await scene.copyFile() }]),
      HypervisorError,
    );
  },
};

/** Starts a guest, and returns a copy request for each of its two disks. */
async function aGuest(
  scene: ConformanceScene,
  options: { paused?: boolean } = {},
): Promise<{ id: string; copies: readonly DiskCopy[]; ids: readonly [string, string] }> {
  const definition = await scene.definitionWithDisks();
  await scene.hypervisor.create(definition, options);
  const ids = [newUid(), newUid()] as const;
  const copies = [
    { copyId: ids[0], deviceId: 'disk-first', path: await scene.copyFile() },
    { copyId: ids[1], deviceId: 'disk-second', path: await scene.copyFile() },
  ];
  return { id: definition.id, copies, ids };
}

async function slow(scene: ConformanceScene): Promise<Hypervisor> {
  const hypervisor = await scene.reopenSlow();
  await hypervisor.adopt();
  return hypervisor;
}

/** Waits for the end of a copy, checking after each change; the test's timeout is the limit. */
export function waitForCopy(hypervisor: Hypervisor, id: string, copyId: string): Promise<CopyState> {
  return new Promise((resolve, reject) => {
    const check = async () => {
      const state = await hypervisor.copyState(id, copyId);
      if (state?.state === 'copying') return;
      stop();
      if (state === undefined) throw new Error(`copy ${copyId} does not exist`);
      resolve(state);
    };
    const stop = hypervisor.onChange((changed) => {
      if (changed === id) check().catch(reject);
    });
    check().catch(reject);
  });
}
