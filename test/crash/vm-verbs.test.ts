/**
 * The server is lost after each write that a VM with a claim costs on its way: start, restart, stop, delete. Guests go
 * on, and agents too unless the whole machine is restarted. The next server takes over from there: the VM comes to where
 * it was to go, as the same machine, no guest was started twice, and nothing is left behind.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { FULL_RUN } from '#test/support/full-run.ts';
import type { Loose } from '#test/support/test-api.ts';
import { aClaim, aVmOnClaim, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const VM = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines/db';
/** More than any verb has: past it, something writes for ever. */
const MAX_POINTS = 100;

interface Verb {
  ask(plane: VmPlane): Promise<unknown>;
  /** Whether it was taken: somebody who got no answer looks before asking again. `uid`: of the instance before. */
  isTaken(vm: Loose, vmi: Loose, uid: string | undefined): boolean;
  readonly end: 'runs' | 'stopped' | 'gone';
}

const verbs: Record<'start' | 'restart' | 'stop' | 'delete', Verb> = {
  start: {
    ask: (plane) => plane.tell('start', 'db'),
    isTaken: (vm) => vm.spec.runStrategy === 'Always',
    end: 'runs',
  },
  restart: {
    ask: (plane) => plane.tell('restart', 'db'),
    isTaken: (_, vmi, uid) => vmi.metadata.uid !== uid,
    end: 'runs',
  },
  stop: {
    ask: (plane) => plane.tell('stop', 'db'),
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

/** Loses the server after so many writes, and starts another; false where all was done with fewer. */
async function isCutWhile(plane: VmPlane, { ask, isTaken }: Verb, { after, agents }: Crash): Promise<boolean> {
  const uid = (await plane.find('VirtualMachineInstance', 'db'))?.metadata.uid;
  const cut = plane.cutAfter(after);
  const run = async (): Promise<'done'> => {
    await ask(plane);
    await plane.settle();
    return 'done';
  };
  const running = run();
  // After the cut it hangs or fails, as it must.
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
    assert.equal(await plane.shown('db'), `Running, VMI Running, running, ${starts}`);
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
  if (end === 'stopped') return assert.equal(await plane.shown('db'), `Stopped, no VMI, no guest, ${starts}`);
  for (const kind of ['VirtualMachine', 'VirtualMachineInstance', 'VirtualMachineIdentity']) {
    assert.deepEqual(await plane.list(kind), []);
  }
}

/** The record says who the VM is, and every guest of it was that, and the same on its volume. */
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

/** One life of a VM, each verb of it cut after the n-th write. How many of them were. */
async function live(plane: VmPlane, crash: Crash): Promise<number> {
  await plane.put(aClaim('data'));
  await plane.apply(aVmOnClaim('db', 'data', { runStrategy: 'Halted' }));
  const before = plane.starts.length;
  let cuts = 0;
  for (const [name, verb] of Object.entries(verbs)) {
    try {
      if (await isCutWhile(plane, verb, crash)) cuts++;
      await verify(plane, verb.end, before + (name === 'start' ? 1 : 2));
      if (verb.end !== 'gone') await verifyIdentity(plane, before);
    } catch (error) {
      throw new Error(`${name}, cut after write ${crash.after}: ${(error as Error).message}`, { cause: error });
    }
  }
  await plane.delete('PersistentVolumeClaim', 'data');
  assert.deepEqual(await plane.list('PersistentVolume'), []);
  assert.deepEqual(
    plane.nodes.flatMap(({ data }) => [...data]),
    [],
  );
  return cuts;
}

/** Else every other write, and with all agents those between. */

async function liveThroughEveryCrash(t: TestContext, agents: boolean): Promise<void> {
  const plane = await startVmPlane(t);
  let points = 0;
  for (let after = agents && !FULL_RUN ? 1 : 0, cuts = 1; cuts > 0; after += FULL_RUN ? 1 : 2) {
    assert.ok(after < MAX_POINTS, 'every verb comes to its end');
    cuts = await live(plane, { after, agents });
    points += cuts;
  }
  t.diagnostic(`${points} points`);
  assert.ok(points > (FULL_RUN ? 50 : 25), `only ${points} points`);
}

test('the server is lost after any write', (t) => liveThroughEveryCrash(t, false));
test('the server and all agents are lost after any write', (t) => liveThroughEveryCrash(t, true));
