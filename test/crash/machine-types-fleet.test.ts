/** A fleet whose machine types change while the Job is killed many times: no VM restarts twice, and few at a time. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { RestartingVms } from '#test/support/restarting-vms.ts';
import { TransitionScene } from '#test/support/transition-scene.ts';
import { aVm, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const FLEET = 200;
const AT_ONCE = 7;

/** Two of five VMs run. */
const fleet = Array.from({ length: FLEET }, (_, index) => ({
  name: `vm-${String(index).padStart(3, '0')}`,
  runs: index % 5 < 2,
}));

const oldVm = (name: string, runStrategy: string) =>
  aVm(name, { runStrategy }, { domain: { machine: { type: 'pc-q35-rhel8.2.0' } } });

async function startFleet(t: TestContext): Promise<VmPlane> {
  const plane = await startVmPlane(t);
  for (const { name, runs } of fleet) await plane.beginApply(oldVm(name, runs ? 'Always' : 'Halted'));
  await plane.settle();
  return plane;
}

/** Runs the Job with a kill after each number of writes, in turn, until it completes; returns the number of kills. */
async function runKilled(scene: TransitionScene, writes: readonly number[]): Promise<number> {
  for (let kills = 0; ; kills++) {
    assert.ok(kills < 2000, 'the Job never completes');
    if ((await scene.run({ killAfter: writes[kills % writes.length]! })) === 'done') return kills;
  }
}

test(`${FLEET} VMs are restarted once each although the Job is killed many times`, async (t) => {
  const plane = await startFleet(t);
  const scene = await TransitionScene.create(plane, { glob: '*rhel-8.*', restartNow: true, maxRestarts: AT_ONCE });
  const restarting = await RestartingVms.watch(t, plane);
  const kills = await runKilled(scene, [1, 2, 3, 7, 13, 25]);
  assert.equal(restarting.maxConcurrent, AT_ONCE);
  assert.equal(restarting.startedCount, fleet.filter(({ runs }) => runs).length);
  assert.ok(kills >= 20, `killed only ${kills} times`);
  await plane.settle();
  const states = await scene.states();
  for (const { name, runs } of fleet) {
    assert.equal(states[name], 'done');
    assert.equal(plane.startsOf(name).length, runs ? 2 : 0, name);
    const vm = await plane.get('VirtualMachine', name);
    assert.equal(vm.spec.template.spec.domain.machine.type, runs ? 'q35' : undefined);
    assert.equal(vm.status.machineTypeRestartRequired, undefined);
  }
});

test('the Job continues when the server is killed and restarted', async (t) => {
  const plane = await startVmPlane(t);
  const names = Array.from({ length: 24 }, (_, index) => `vm-${index}`);
  for (const name of names) await plane.beginApply(oldVm(name, 'Always'));
  await plane.settle();
  const scene = await TransitionScene.create(plane, { glob: '*rhel-8.*', restartNow: true, maxRestarts: 1 });
  const running = scene.start();
  for (const writes of [3, 17, 30, 11, 8]) {
    // Later writes get no answer.
    const cut = plane.cutAfter(writes);
    await waitForCut(plane, cut);
    assert.equal(running.outcome, undefined, 'the server is killed before the end');
    await plane.restartServer();
  }
  assert.equal(await scene.awaitEnd(running), 'done');
  await plane.settle();
  for (const name of names) assert.equal(await plane.summaryOf(name), 'Running, VMI Running, running, 2');
});

async function waitForCut(plane: VmPlane, cut: Promise<'cut'>): Promise<void> {
  let isCut = false;
  void cut.then(() => (isCut = true));
  for (let step = 0; !isCut; step++) {
    assert.ok(step < 100, 'no component writes any more');
    await plane.clock.advance(1000);
  }
}
