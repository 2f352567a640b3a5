/** Guests outlive the process that started them. */
import assert from 'node:assert/strict';
import { newUid } from '#lib/ids.ts';
import { hasEnded, startGuest, stateOf, waitUntil, type Cases } from '#node/hypervisor/testing/scene.ts';

export const adoptCases: Cases = {
  'finds no domains in an empty directory': async (scene) => {
    const next = await scene.reopen();
    await next.adopt();
    assert.deepEqual(next.list(), []);
  },

  'finds each guest in its present state': async (scene) => {
    const ids = [newUid(), newUid(), newUid()] as const;
    await startGuest(scene, { id: ids[0] });
    await startGuest(scene, { id: ids[1], paused: true });
    await startGuest(scene, { id: ids[2] });
    await scene.hypervisor.destroy(ids[2]);
    const before = ids.map((id) => scene.hypervisor.get(id));

    const next = await scene.reopen();
    await next.adopt();

    assert.deepEqual(
      ids.map((id) => next.get(id)),
      before,
    );
    assert.deepEqual(
      ids.map((id) => stateOf(next, id)),
      ['running', 'paused', 'ended'],
    );
    assert.equal(next.list().length, 3);
  },

  'controls an adopted guest completely': async (scene) => {
    const wanted = scene.definition();
    await scene.hypervisor.create(wanted);
    const next = await scene.reopen();
    await next.adopt();

    await next.create(wanted);
    await next.pause(wanted.id);
    assert.equal(stateOf(next, wanted.id), 'paused');
    await next.resume(wanted.id);
    const learned = await next.learn(wanted.id);
    assert.deepEqual(
      learned.find(({ name }) => name !== undefined)?.address,
      wanted.devices.find(({ id }) => id === learned.find(({ name }) => name !== undefined)?.id)?.address,
    );
    (await next.openConsole(wanted.id)).destroy();
    await next.destroy(wanted.id);
    await next.remove(wanted.id);

    assert.deepEqual(next.list(), []);
  },

  'reports a guest that died while no hypervisor was open': async (scene) => {
    const id = await startGuest(scene);

    const next = await scene.reopen(() => scene.killGuest(id));
    await next.adopt();

    const current = next.get(id)?.current;
    assert.equal(current?.state === 'ended' && current.how, 'crashed');
    await next.remove(id);
    assert.deepEqual(next.list(), []);
  },

  'notices the end of an adopted guest': async (scene) => {
    const id = await startGuest(scene);
    const next = await scene.reopen();
    await next.adopt();

    await scene.killGuest(id);

    const { current } = await waitUntil(next, id, hasEnded);
    assert.equal(current.state === 'ended' && current.how, 'crashed');
  },

  'does not find removed domains': async (scene) => {
    const id = await startGuest(scene);
    await scene.hypervisor.destroy(id);
    await scene.hypervisor.remove(id);

    const next = await scene.reopen();
    await next.adopt();

    assert.deepEqual(next.list(), []);
  },

  'closes without touching the guests': async (scene) => {
    const id = await startGuest(scene);
    const before = scene.hypervisor.get(id);
    await scene.hypervisor.close();

    const next = await scene.reopen();
    await next.adopt();

    assert.deepEqual(next.get(id), before);
    assert.equal(stateOf(next, id), 'running');
  },

  'keeps the console log for the next process': async (scene) => {
    const id = await startGuest(scene);
    const before = await scene.hypervisor.readConsoleLog(id);

    const next = await scene.reopen();
    await next.adopt();

    const after = await next.readConsoleLog(id);
    assert.ok(after.subarray(0, before.length).equals(before));
  },
};
