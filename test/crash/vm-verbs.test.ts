/**
 * Kills the server after each write of start, restart, stop and delete of a VM with a claim. Guests keep running, and so
 * do the agents, unless they are killed too. After the restart the VM reaches the requested state with the same identity,
 * no guest was started twice, and nothing is left behind.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { FULL_RUN } from '#test/support/full-run.ts';
import type { Loose } from '#test/support/test-api.ts';
import { aClaim, aVmOnClaim, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const VM = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines/db';
/** More writes than any verb needs; beyond it, a controller writes forever. */
const MAX_POINTS = 100;

interface Verb {
  ask(plane: VmPlane): Promise<unknown>;
  /** Reports whether the request took effect: a client without an answer checks before it asks again. `uid`: of the previous instance. */
  isTaken(vm: Loose, vmi: Loose, uid: string | undefined): boolean;
  readonly end: 'runs' | 'stopped' | 'gone';
}

const verbs: Record<'start' | 'restart' | 'stop' | 'delete', Verb> = {
  start: {
    ask: (plane) => plane.beginVerb('start', 'db'),
    isTaken: (vm) => vm.spec.runStrategy === 'Always',
    end: 'runs',
  },
  restart: {
    ask: (plane) => plane.beginVerb('restart', 'db'),
    isTaken: (_, vmi, uid) => vmi.metadata.uid !== uid,
    end: 'runs',
  },
  stop: {
    ask: (plane) => plane.beginVerb('stop', 'db'),
    isTaken: (vm) => vm.spec.runStrategy === 'Halted',
    end: 'stopped',
  },
  delete: {
    ask: (plane) => plane.call('DELETE', VM),
    isTaken: (vm) => vm === undefined,
    end: 'gone',
  },
};

interface Crash {
  readonly after: number;
  readonly agents: boolean;
}

/** Kills the server after a number of writes and starts it again; returns false if the verb needed fewer writes. */
async function killDuring(plane: VmPlane, { ask, isTaken }: Verb, { after, agents }: Crash): Promise<boolean> {
  const uid = (await plane.find('VirtualMachineInstance', 'db'))?.metadata.uid;
  const cut = plane.cutAfter(after);
  const run = async (): Promise<'done'> => {
    await ask(plane);
    await plane.settle();
    return 'done';
  };
  const running = run();
  // After the kill it hangs or fails, as expected.
  running.catch(() => {});
  if ((await Promise.race([running, cut])) === 'done') {
    void plane.cutAfter(Infinity);
    return false;
  }
  await plane.restartServer({ agents });
  const [vm, vmi] = [await plane.find('VirtualMachine', 'db'), await plane.find('VirtualMachineInstance', 'db')];
  if (!isTaken(vm, vmi, uid)) {
    await ask(plane);
    await plane.settle();
  }
  return true;
}

async function verify(plane: VmPlane, end: Verb['end'], starts: number): Promise<void> {
  const pods = await plane.list('Pod');
  const record = await plane.find('VirtualMachineIdentity', 'db');
  if (end === 'runs') {
    assert.equal(await plane.summaryOf('db'), `Running, VMI Running, running, ${starts}`);
    const { id, node } = plane.starts.at(-1)!;
    assert.equal(record.status.instance, id);
    assert.deepEqual(
      pods.map(({ spec, status }) => [spec.nodeName, status.phase]),
      [[node, 'Running']],
    );
    return;
  }
  assert.deepEqual(pods, []);
  assert.deepEqual(
    plane.nodes.flatMap(({ host }) => [...host.guests()]),
    [],
  );
  if (end === 'stopped') return assert.equal(await plane.summaryOf('db'), `Stopped, no VMI, no guest, ${starts}`);
  for (const kind of ['VirtualMachine', 'VirtualMachineInstance', 'VirtualMachineIdentity']) {
    assert.deepEqual(await plane.list(kind), []);
  }
}

/** Checks that all guests had the identity of the record, and that the VM has its only volume. */
async function verifyIdentity(plane: VmPlane, first: number): Promise<void> {
  const { spec } = await plane.get('VirtualMachineIdentity', 'db');
  const vm = await plane.get('VirtualMachine', 'db');
  assert.equal(spec.firmware.uuid, vm.spec.template.spec.domain.firmware.uuid);
  const machines = plane.starts.slice(first).map(({ machine }) => machine);
  for (const machine of machines) {
    assert.deepEqual(machine, machines[0]);
    assert.equal(machine.firmware.uuid, spec.firmware.uuid);
    const nics = machine.devices.filter((device) => device.type === 'interface');
    assert.deepEqual(
      nics.map(({ name, macAddress }) => ({ name, macAddress })),
      spec.interfaces,
    );
  }
  const volumes = await plane.list('PersistentVolume');
  assert.deepEqual(
    volumes.map((volume) => [volume.status.phase, volume.spec.claimRef.name]),
    [['Bound', 'data']],
  );
}

/** Runs all verbs on one VM, with a kill after the n-th write of each; returns the number of kills. */
async function runVerbs(plane: VmPlane, crash: Crash): Promise<number> {
  await plane.beginApply(aClaim('data'));
  await plane.apply(aVmOnClaim('db', 'data', { runStrategy: 'Halted' }));
  const before = plane.starts.length;
  let cuts = 0;
  for (const [name, verb] of Object.entries(verbs)) {
    try {
      if (await killDuring(plane, verb, crash)) cuts++;
      await verify(plane, verb.end, before + (name === 'start' ? 1 : 2));
      if (verb.end !== 'gone') await verifyIdentity(plane, before);
    } catch (error) {
      throw new Error(`${name}, killed after write ${crash.after}: ${(error as Error).message}`, { cause: error });
    }
  }
  await plane.delete('PersistentVolumeClaim', 'data');
  assert.deepEqual(await plane.list('PersistentVolume'), []);
  assert.deepEqual(
    plane.nodes.flatMap(({ volumeNames }) => [...volumeNames]),
    [],
  );
  return cuts;
}

/** Runs all crash points: a full run tests every write, another run every second one, and the others with the agents. */
async function runAllCrashPoints(t: TestContext, agents: boolean): Promise<void> {
  const plane = await startVmPlane(t);
  let points = 0;
  for (let after = agents && !FULL_RUN ? 1 : 0, cuts = 1; cuts > 0; after += FULL_RUN ? 1 : 2) {
    assert.ok(after < MAX_POINTS, 'every verb completes');
    cuts = await runVerbs(plane, { after, agents });
    points += cuts;
  }
  t.diagnostic(`${points} points`);
  assert.ok(points > (FULL_RUN ? 50 : 25), `only ${points} points`);
}

test('every verb completes when the server is killed after any write', (t) => runAllCrashPoints(t, false));
test('every verb completes when the server and all agents are killed after any write', (t) =>
  runAllCrashPoints(t, true));
