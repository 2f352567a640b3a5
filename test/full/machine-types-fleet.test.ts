/**
 * The largest supported fleet, whose machine types change while the Job and the server are killed many times: no VM is
 * restarted twice, and few at a time. A watch of the instances counts simultaneous restarts, and the nodes count starts;
 * the test does not rely on what the Job reports.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { RestartingVms } from '#test/support/restarting-vms.ts';
import { TransitionScene } from '#test/support/transition-scene.ts';
import { aVm, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const FLEET = 5000;
/** Stopped VMs, in addition to the running ones. */
const STOPPED = FLEET / 20;
const AT_ONCE = 10;
const OLD = 'pc-q35-rhel8.2.0';
/** VMs that are created before the plane settles. */
const BATCH = 100;
/** VMs that are marked, and restarted by their owners. */
const MARKED = 100;
/**
 * Numbers of writes after which the Job is killed, counted from each start: while the plan is written, at the first
 * patches, among them, and during restarts. Their sum is smaller than the number of writes of the Job.
 */
const JOB_KILLS = [1, 7, 12, 14, 1, 2, 30, 900, 1500, 13, 60, 350, 350, 1, 350, 350, 2, 350, 17, 350];
/** Kills of the server: after `writes` more writes when `begun` VMs have begun to restart. */
const SERVER_LOSSES = [3, 17, 30, 11, 8].map((writes, at) => ({ begun: ((at + 1) * FLEET) / 6, writes }));
const MAX_STEPS = 20_000;
const LIMIT_MS = 3_600_000;

const running = Array.from({ length: FLEET }, (_, index) => `vm-${String(index).padStart(4, '0')}`);
const stopped = Array.from({ length: STOPPED }, (_, index) => `off-${String(index).padStart(3, '0')}`);

async function startFleet(t: TestContext): Promise<VmPlane> {
  const plane = await startVmPlane(t);
  const domain = { machine: { type: OLD } };
  for (const name of stopped) await plane.beginApply(aVm(name, { runStrategy: 'Halted' }, { domain }));
  for (const [index, name] of running.entries()) {
    await plane.beginApply(aVm(name, { runStrategy: 'Always' }, { domain }));
    if (index % BATCH === BATCH - 1) await plane.settle();
  }
  await plane.settle();
  return plane;
}

interface Losses {
  readonly kills: number;
  readonly servers: number;
}

/** Runs the Job until it completes, with all kills. */
async function runWithKills(plane: VmPlane, scene: TransitionScene, restarting: RestartingVms): Promise<Losses> {
  let [kills, servers] = [0, 0];
  let cut: { isOver: boolean } | undefined;
  let job = scene.start({ killAfter: JOB_KILLS[0]! });
  for (let step = 0; step < MAX_STEPS; step++) {
    if (job.outcome === 'killed') job = scene.start({ killAfter: JOB_KILLS[++kills] ?? Infinity });
    else if (job.outcome !== undefined) {
      assert.equal(job.outcome, 'done');
      return { kills, servers };
    }
    const next = SERVER_LOSSES[servers];
    if (cut?.isOver === true) {
      await plane.restartServer();
      cut = undefined;
      servers++;
    } else if (cut === undefined && next !== undefined && restarting.startedCount >= next.begun) {
      const pending = { isOver: false };
      cut = pending;
      void plane.cutAfter(next.writes).then(() => (pending.isOver = true));
    }
    await plane.clock.advance(1000);
  }
  assert.fail(`the job does not end: ${restarting.startedCount} VMs have begun to restart, after ${kills} kills`);
}

function startsByName({ starts }: VmPlane): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { name } of starts) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

/** Returns the names that do not fulfil the condition. */
const findExceptions = (names: readonly string[], holds: (name: string) => boolean) =>
  names.filter((name) => !holds(name));

test(
  `${FLEET} running VMs are restarted once each, although the Job and the server are killed many times`,
  { timeout: LIMIT_MS },
  async (t) => {
    const plane = await startFleet(t);
    const restarting = await RestartingVms.watch(t, plane);
    const scene = await TransitionScene.create(plane, { glob: '*rhel-8.*', restartNow: true, maxRestarts: AT_ONCE });

    const losses = await runWithKills(plane, scene, restarting);
    assert.deepEqual(losses, { kills: JOB_KILLS.length, servers: SERVER_LOSSES.length });
    await plane.settle();

    assert.equal(restarting.maxConcurrent, AT_ONCE);
    const starts = startsByName(plane);
    assert.deepEqual(
      findExceptions(running, (name) => starts.get(`default/${name}`) === 2),
      [],
      'each is restarted once',
    );
    assert.deepEqual(
      findExceptions(stopped, (name) => !starts.has(`default/${name}`)),
      [],
      'stopped VMs are not started',
    );
    const states = await scene.states();
    assert.equal(Object.keys(states).length, FLEET + STOPPED);
    assert.deepEqual(
      findExceptions(Object.keys(states), (name) => states[name] === 'done'),
      [],
    );
    const vms = new Map((await plane.list('VirtualMachine')).map((vm) => [vm.metadata.name, vm]));
    const typeOf = (name: string) => vms.get(name).spec.template.spec.domain.machine?.type;
    const marked = [...vms.keys()].filter((name) => vms.get(name).status.machineTypeRestartRequired !== undefined);
    assert.deepEqual(marked, [], 'no VM is marked if the Job restarts it');
    assert.deepEqual(
      findExceptions(stopped, (name) => typeOf(name) === undefined),
      [],
    );
    assert.deepEqual(
      findExceptions(running, (name) => typeOf(name) === 'q35'),
      [],
      'the default type since their restart',
    );
    const instances = await plane.list('VirtualMachineInstance');
    const runsOn = new Map(instances.map(({ metadata, status }) => [metadata.name, status.machine.type]));
    assert.deepEqual(
      findExceptions(running, (name) => runsOn.get(name) === 'pc-q35-rhel9.2.0'),
      [],
    );
    await t.test('the next Job marks some VMs, and removes the marks when their owners have restarted them', () =>
      markAndRestart(plane),
    );
  },
);

async function markAndRestart(plane: VmPlane): Promise<void> {
  const names = running.slice(0, MARKED);
  for (const name of names) {
    const metadata = { name, labels: { group: 'theirs' } };
    await plane.beginApply({ kind: 'VirtualMachine', apiVersion: 'kubevirt.io/v1', metadata });
  }
  const options = { glob: 'q35', labelSelector: 'group=theirs', target: 'pc-q35-7.1' };
  const scene = await TransitionScene.create(plane, options);
  for (const killAfter of [1, 2, MARKED / 4, MARKED / 4]) assert.equal(await scene.run({ killAfter }), 'killed');
  const job = scene.start();
  await scene.advance(60);
  const marks = async () =>
    (await plane.list('VirtualMachine')).flatMap(({ metadata, status }) =>
      status.machineTypeRestartRequired === undefined ? [] : [`${metadata.name} ${status.machineTypeRestartRequired}`],
    );
  assert.deepEqual(
    await marks(),
    names.map((name) => `${name} true`),
  );
  for (const name of names) assert.equal(await plane.beginVerb('restart', name), '202');
  assert.equal(await scene.awaitEnd(job), 'done');
  assert.deepEqual(
    await marks(),
    names.map((name) => `${name} false`),
  );
}
