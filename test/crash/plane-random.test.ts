/**
 * A random walk over the whole plane: users, guests, agents and the server act at random, often before the plane has
 * settled. In the end, with all nodes back, every VM is in the state that its spec wants, with the same identity as ever,
 * and no two guests of one VM ever ran (which the plane asserts whenever it settles).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Loose } from '#test/support/test-api.ts';
import { createSeededRandom, type SeededRandom } from '#test/support/seeded-random.ts';
import type { SimulatedNode } from '#test/support/vm-plane-nodes.ts';
import { aClaim, aVm, aVmOnClaim, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';
import { runStrategyOf } from '#api/virtual-machine/kind.ts';

const STEPS = 40;
const VMS: Readonly<Record<string, Loose>> = {
  always: aVmOnClaim('always', 'data', { runStrategy: 'Always' }),
  manual: aVm('manual', { runStrategy: 'Manual' }),
  rerun: aVm('rerun', { runStrategy: 'RerunOnFailure' }),
  once: aVm('once', { runStrategy: 'Once' }),
};
const NAMES = Object.keys(VMS);
const VMIS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';

type Step = (plane: VmPlane, random: SeededRandom) => Promise<string>;

/** Each step returns what it did, for the reader of a failure. */
const steps: readonly Step[] = [
  async (plane, random) => {
    const [verb, vm] = [random.pick(['start', 'stop', 'restart', 'stop', 'start']), random.pick(NAMES)];
    return `${verb} ${vm}: ${await plane.beginVerb(verb, vm)}`;
  },
  async (plane, random) => {
    const [verb, vm] = [random.pick(['pause', 'unpause', 'reset']), random.pick(NAMES)];
    return `${verb} ${vm}: ${await plane.beginVerb(verb, vm)}`;
  },
  async (plane, random) => {
    const vm = random.pick(NAMES);
    const [what, guest] = [random.pick(['shutDown', 'crash', 'ignorePowerButton'] as const), plane.guests(vm)[0]];
    guest?.[what]('QEMU exited with code 1');
    return `guest of ${vm}: ${what}`;
  },
  async (plane, random) => {
    const vm = random.pick(NAMES);
    return `delete VMI ${vm}: ${(await plane.call('DELETE', `${VMIS}/${vm}`)).status}`;
  },
  async (plane, random) => {
    const pods = await plane.list('Pod');
    if (pods.length === 0) return 'no pod';
    const pod = random.pick(pods);
    const url = `/api/v1/namespaces/default/pods/${pod.metadata.name}`;
    return `delete pod ${pod.metadata.name}: ${(await plane.call('DELETE', url)).status}`;
  },
  async (plane, random) => {
    const node = random.pick(plane.nodes);
    if (await bringBack(plane, node)) return `${node.name} is back`;
    if (random.chance(0.5)) await plane.killNode(node.name);
    else node.isolate();
    return `${node.name} is ${node.isIsolated ? 'isolated' : 'without its agent'}`;
  },
  async (plane, random) => {
    const after = random.between(0, 12);
    const cut = plane.cutAfter(after);
    const [verb, vm] = [random.pick(['start', 'stop', 'restart']), random.pick(NAMES)];
    const running = plane.runVerb(verb, vm).catch(() => 'failed');
    await Promise.race([running, cut]);
    await plane.restartServer();
    return `server killed after ${after} writes of ${verb} ${vm}`;
  },
  async (plane, random) => {
    const ms = random.pick([1000, 20_000, 60_000, 400_000]);
    await plane.advance(ms);
    return `${ms} ms later`;
  },
];

async function bringBack(plane: VmPlane, node: SimulatedNode): Promise<boolean> {
  if (node.isIsolated) node.reconnect();
  else if (node.agent === undefined) await plane.startAgent(node.name);
  else return false;
  return true;
}

test('after any sequence of steps, every VM reaches its desired state', async (t) => {
  const random = createSeededRandom(t);
  const plane = await startVmPlane(t);
  await plane.apply(aClaim('data'));
  for (const vm of Object.values(VMS)) await plane.beginApply(vm);
  const done: string[] = [];
  try {
    for (let step = 0; step < STEPS; step++) {
      done.push(await random.pick(steps)(plane, random));
      if (random.chance(0.4)) await plane.settle();
    }
    for (const node of plane.nodes) await bringBack(plane, node);
    // Longer than any guest may take to stop, and longer than any delay before a retry.
    await plane.advance(330_000);
    for (const vm of NAMES) await verify(plane, vm);
    await verifyNothingElse(plane);
  } catch (error) {
    throw new Error(`${(error as Error).message}\nafter:\n${done.join('\n')}`, { cause: error });
  }
});

async function verify(plane: VmPlane, name: string): Promise<void> {
  const vm = await plane.get('VirtualMachine', name);
  const vmi = await plane.find('VirtualMachineInstance', name);
  const guests = plane.guests(name);
  const shown = await plane.summaryOf(name);
  const runs = vmi?.status.phase === 'Running';
  assert.deepEqual(
    guests.map(({ record }) => record.id),
    runs ? [vmi.metadata.uid] : [],
    shown,
  );
  assert.equal(vmi?.metadata.deletionTimestamp, undefined, `${shown}: the instance is stuck in deletion`);
  const strategy = runStrategyOf(vm);
  if (strategy === 'Always') assert.ok(runs, shown);
  if (strategy === 'Halted') assert.equal(vmi, undefined, shown);
  assert.equal(vm.status.stateChangeRequests, undefined, shown);
  assert.match(vm.status.printableStatus, runs ? /^(Running|Paused)$/ : /^(Stopped|CrashLoopBackOff)$/, shown);
  const machines = plane.startsOf(name).map(({ machine }) => machine);
  for (const machine of machines) assert.deepEqual(machine, machines[0], 'the same machine at every start');
}

async function verifyNothingElse(plane: VmPlane): Promise<void> {
  const vmis = new Set((await plane.list('VirtualMachineInstance')).map(({ metadata }) => metadata.uid));
  for (const { metadata } of await plane.list('Pod')) {
    assert.ok(vmis.has(metadata.labels['kubevirt.io/created-by']), `pod ${metadata.name} has no instance`);
    assert.equal(metadata.deletionTimestamp, undefined, `pod ${metadata.name} is stuck in deletion`);
  }
  for (const { host } of plane.nodes) {
    for (const { record } of host.guests()) assert.ok(vmis.has(record.id), `a guest of ${record.name} is left`);
  }
}
