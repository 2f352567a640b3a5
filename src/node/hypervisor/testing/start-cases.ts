/** Start, pause and resume of guests, and what the hypervisor reports of them. */
import assert from 'node:assert/strict';
import { newUid } from '#lib/ids.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { startGuest, stateOf, type Cases } from '#node/hypervisor/testing/scene.ts';

export const startCases: Cases = {
  'lists each machine type once, and its version': async ({ hypervisor, definition }) => {
    const { machines, version } = await hypervisor.capabilities();
    const names = machines.flatMap(({ name, alias }) => (alias === undefined ? [name] : [name, alias]));

    assert.ok(names.includes(definition().machine));
    assert.equal(new Set(names).size, names.length);
    assert.ok(machines.every(({ maxCpus }) => maxCpus > 0));
    assert.notEqual(version, '');
  },

  'lists a started guest': async ({ hypervisor, definition }) => {
    const wanted = definition();
    assert.equal(hypervisor.get(wanted.id), undefined);

    await hypervisor.create(wanted);

    const domain = hypervisor.get(wanted.id);
    assert.equal(domain?.id, wanted.id);
    assert.equal(domain.name, wanted.name);
    assert.equal(domain.machine, wanted.machine);
    assert.deepEqual(domain.current, { state: 'running' });
    assert.ok(domain.startedAtMs > 0);
    assert.deepEqual(
      hypervisor.list().map(({ id }) => id),
      [wanted.id],
    );
  },

  'prepares a guest without running it': async (scene) => {
    const id = await startGuest(scene, { paused: true });
    assert.equal(stateOf(scene.hypervisor, id), 'paused');

    await scene.hypervisor.resume(id);
    assert.equal(stateOf(scene.hypervisor, id), 'running');
  },

  'starts no guest twice': async ({ hypervisor, definition }) => {
    const wanted = definition();
    await hypervisor.create(wanted, { paused: true });
    const before = hypervisor.get(wanted.id);

    await hypervisor.create(wanted);

    assert.deepEqual(hypervisor.get(wanted.id), before);
    assert.equal(hypervisor.list().length, 1);
  },

  'runs several guests at the same time': async (scene) => {
    const ids = await Promise.all([startGuest(scene, { id: newUid() }), startGuest(scene, { id: newUid() })]);

    await scene.hypervisor.pause(ids[0]);

    assert.deepEqual(
      ids.map((id) => stateOf(scene.hypervisor, id)),
      ['paused', 'running'],
    );
  },

  'leaves nothing behind after a failed start, and reports that a retry is useless': async (scene) => {
    const impossible = scene.definition({ machine: 'pc-q35-99.0' });

    await assert.rejects(
      scene.hypervisor.create(impossible),
      (error) => error instanceof HypervisorError && error.permanent && error.message.includes(impossible.name),
    );

    assert.deepEqual(scene.hypervisor.list(), []);
    await scene.hypervisor.create({ ...impossible, machine: scene.definition().machine });
    assert.equal(stateOf(scene.hypervisor, impossible.id), 'running');
  },

  'starts nothing if the signal is aborted': async ({ hypervisor, definition }) => {
    await assert.rejects(hypervisor.create(definition(), { signal: AbortSignal.abort() }));
    assert.deepEqual(hypervisor.list(), []);
  },

  'pauses and resumes, also repeatedly': async (scene) => {
    const id = await startGuest(scene);
    for (const [verb, state] of [
      ['pause', 'paused'],
      ['pause', 'paused'],
      ['resume', 'running'],
      ['resume', 'running'],
    ] as const) {
      await scene.hypervisor[verb](id);
      assert.equal(stateOf(scene.hypervisor, id), state);
    }
  },

  'calls listeners after each change of the state until they are removed': async (scene) => {
    const { hypervisor } = scene;
    const seen: string[] = [];
    const stop = hypervisor.onChange((id) => seen.push(`${id} ${stateOf(hypervisor, id)}`));

    const id = await startGuest(scene);
    await hypervisor.pause(id);
    await hypervisor.resume(id);
    stop();
    await hypervisor.pause(id);

    const distinct = seen.filter((text, i) => text !== seen[i - 1]);
    assert.deepEqual(
      distinct.filter((text) => !text.endsWith('absent')),
      [`${id} running`, `${id} paused`, `${id} running`],
    );
  },

  'keeps the process of a guest that is reset or restarted': async (scene) => {
    const id = await startGuest(scene);
    const pid = scene.hypervisor.get(id)?.pid;

    await scene.hypervisor.reset(id);
    await scene.hypervisor.softReboot(id);

    assert.equal(stateOf(scene.hypervisor, id), 'running');
    assert.equal(scene.hypervisor.get(id)?.pid, pid);
  },

  'learns the address of every device as it was defined': async ({ hypervisor, definition }) => {
    const wanted = definition();
    await hypervisor.create(wanted);

    const learned = new Map((await hypervisor.learn(wanted.id)).map((device) => [device.id, device]));

    assert.ok(wanted.devices.some(({ address }) => address !== undefined));
    for (const { id, address } of wanted.devices) {
      assert.ok(learned.has(id), `${id} was not learned`);
      assert.deepEqual(learned.get(id)?.address, address, `the address of ${id}`);
    }
    for (const device of learned.values()) {
      if (device.managed === true) assert.ok(wanted.devices.some(({ id }) => id === device.id));
    }
  },

  'refuses actions on unknown guests': async ({ hypervisor }) => {
    const id = newUid();
    const asked = {
      pause: () => hypervisor.pause(id),
      resume: () => hypervisor.resume(id),
      powerDown: () => hypervisor.powerDown(id),
      softReboot: () => hypervisor.softReboot(id),
      reset: () => hypervisor.reset(id),
      learn: () => hypervisor.learn(id),
      openConsole: () => hypervisor.openConsole(id),
      openDisplay: () => hypervisor.openDisplay(id),
      screenshot: () => hypervisor.screenshot(id, { moveCursor: false }),
      readConsoleLog: () => hypervisor.readConsoleLog(id),
      resizeDisk: () => hypervisor.resizeDisk(id, 'disk-root', 4096),
    };
    for (const [verb, ask] of Object.entries(asked)) {
      await assert.rejects(ask(), HypervisorError, verb);
    }
    assert.equal(hypervisor.get(id), undefined);
  },
};
