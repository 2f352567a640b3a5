/** The ways in which guests end, and what is left of them. */
import assert from 'node:assert/strict';
import { newUid } from '#lib/ids.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { hasEnded, startGuest, stateOf, waitUntil, type Cases } from '#node/hypervisor/testing/scene.ts';

export const endCases: Cases = {
  'presses the power button, and lets the guest decide': async (scene) => {
    const id = await startGuest(scene);

    await scene.hypervisor.powerDown(id);

    if (!scene.shutsDownOnPowerButton) {
      await scene.hypervisor.powerDown(id);
      assert.equal(stateOf(scene.hypervisor, id), 'running');
      return;
    }
    const { current } = await waitUntil(scene.hypervisor, id, hasEnded);
    assert.equal(current.state === 'ended' && current.how, 'shutdown');
  },

  'switches off a guest': async (scene) => {
    const id = await startGuest(scene);

    await scene.hypervisor.destroy(id);

    const current = scene.hypervisor.get(id)?.current;
    assert.equal(current?.state === 'ended' && current.how, 'destroyed');
  },

  'switches off a paused guest, whose hypervisor answers until then': async (scene) => {
    const id = await startGuest(scene, { paused: true });
    const ping = () => scene.hypervisor.ping(id, { timeoutMs: 10_000 });
    await ping();
    await scene.hypervisor.destroy(id);
    assert.equal(stateOf(scene.hypervisor, id), 'ended');
    await assert.rejects(ping(), HypervisorError);
  },

  'ignores destroy and remove of unknown domains': async ({ hypervisor }) => {
    await hypervisor.destroy(newUid());
    await hypervisor.remove(newUid());
    assert.deepEqual(hypervisor.list(), []);
  },

  'reports that a guest died': async (scene) => {
    const id = await startGuest(scene);

    await scene.killGuest(id);

    const { current } = await waitUntil(scene.hypervisor, id, hasEnded);
    assert.equal(current.state === 'ended' && current.how, 'crashed');
  },

  'keeps the way a guest ended, whatever is requested later': async (scene) => {
    const { hypervisor, definition, killGuest } = scene;
    const wanted = definition();
    await hypervisor.create(wanted);
    await killGuest(wanted.id);
    const { current } = await waitUntil(hypervisor, wanted.id, hasEnded);

    await assert.rejects(hypervisor.pause(wanted.id), HypervisorError);
    await assert.rejects(hypervisor.resume(wanted.id), HypervisorError);
    await hypervisor.destroy(wanted.id);
    await hypervisor.create(wanted);

    assert.deepEqual(hypervisor.get(wanted.id)?.current, current);
  },

  'refuses to remove a guest that still runs': async (scene) => {
    const id = await startGuest(scene);
    await assert.rejects(scene.hypervisor.remove(id), HypervisorError);
    assert.equal(stateOf(scene.hypervisor, id), 'running');

    await scene.hypervisor.pause(id);
    await assert.rejects(scene.hypervisor.remove(id), HypervisorError);
    assert.equal(stateOf(scene.hypervisor, id), 'paused');
  },

  'forgets a removed guest, which can be started again': async (scene) => {
    const id = await startGuest(scene);
    await scene.hypervisor.destroy(id);

    await scene.hypervisor.remove(id);
    await scene.hypervisor.remove(id);

    assert.equal(scene.hypervisor.get(id), undefined);
    await assert.rejects(scene.hypervisor.readConsoleLog(id), HypervisorError);
    await startGuest(scene, { id });
    assert.equal(stateOf(scene.hypervisor, id), 'running');
  },

  'ends one guest and keeps the others': async (scene) => {
    const kept = await startGuest(scene, { id: newUid() });
    const ended = await startGuest(scene, { id: newUid() });

    await scene.hypervisor.destroy(ended);
    await scene.hypervisor.remove(ended);

    assert.equal(stateOf(scene.hypervisor, kept), 'running');
    assert.equal(scene.hypervisor.list().length, 1);
  },
};
