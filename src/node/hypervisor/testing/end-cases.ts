/** Guests that end, each in its way, and what is left of them. */
import assert from 'node:assert/strict';
import { newUid } from '#lib/ids.ts';
import { HypervisorError } from '../hypervisor.ts';
import { hasEnded, started, stateOf, until, type Cases } from './scene.ts';

export const endCases: Cases = {
  'presses the power button, and leaves it to the guest': async (scene) => {
    const id = await started(scene);

    await scene.hypervisor.powerDown(id);

    if (!scene.obeys) {
      await scene.hypervisor.powerDown(id);
      assert.equal(stateOf(scene.hypervisor, id), 'running');
      return;
    }
    const { current } = await until(scene.hypervisor, id, hasEnded);
    assert.equal(current.state === 'ended' && current.how, 'shutdown');
  },

  'switches a guest off': async (scene) => {
    const id = await started(scene);

    await scene.hypervisor.destroy(id);

    const current = scene.hypervisor.get(id)?.current;
    assert.equal(current?.state === 'ended' && current.how, 'destroyed');
  },

  'switches a paused guest off, which answers until then': async (scene) => {
    const id = await started(scene, { paused: true });
    const ping = () => scene.hypervisor.ping(id, { timeoutMs: 10_000 });
    await ping();
    await scene.hypervisor.destroy(id);
    assert.equal(stateOf(scene.hypervisor, id), 'ended');
    await assert.rejects(ping(), HypervisorError);
  },

  'has nothing to switch off or to remove where there is nothing': async ({ hypervisor }) => {
    await hypervisor.destroy(newUid());
    await hypervisor.remove(newUid());
    assert.deepEqual(hypervisor.list(), []);
  },

  'tells that a guest died': async (scene) => {
    const id = await started(scene);

    await scene.killGuest(id);

    const { current } = await until(scene.hypervisor, id, hasEnded);
    assert.equal(current.state === 'ended' && current.how, 'crashed');
  },

  'keeps how a guest ended, whatever is asked of it later': async (scene) => {
    const { hypervisor, definition, killGuest } = scene;
    const wanted = definition();
    await hypervisor.create(wanted);
    await killGuest(wanted.id);
    const { current } = await until(hypervisor, wanted.id, hasEnded);

    await assert.rejects(hypervisor.pause(wanted.id), HypervisorError);
    await assert.rejects(hypervisor.resume(wanted.id), HypervisorError);
    await hypervisor.destroy(wanted.id);
    await hypervisor.create(wanted);

    assert.deepEqual(hypervisor.get(wanted.id)?.current, current);
  },

  'does not remove a guest that still runs': async (scene) => {
    const id = await started(scene);
    await assert.rejects(scene.hypervisor.remove(id), HypervisorError);
    assert.equal(stateOf(scene.hypervisor, id), 'running');

    await scene.hypervisor.pause(id);
    await assert.rejects(scene.hypervisor.remove(id), HypervisorError);
    assert.equal(stateOf(scene.hypervisor, id), 'paused');
  },

  'forgets a guest that is removed, and may start it anew': async (scene) => {
    const id = await started(scene);
    await scene.hypervisor.destroy(id);

    await scene.hypervisor.remove(id);
    await scene.hypervisor.remove(id);

    assert.equal(scene.hypervisor.get(id), undefined);
    await assert.rejects(scene.hypervisor.readConsoleLog(id), HypervisorError);
    await started(scene, { id });
    assert.equal(stateOf(scene.hypervisor, id), 'running');
  },

  'ends one guest and leaves the others': async (scene) => {
    const kept = await started(scene, { id: newUid() });
    const ended = await started(scene, { id: newUid() });

    await scene.hypervisor.destroy(ended);
    await scene.hypervisor.remove(ended);

    assert.equal(stateOf(scene.hypervisor, kept), 'running');
    assert.equal(scene.hypervisor.list().length, 1);
  },
};
