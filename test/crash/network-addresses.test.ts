/**
 * Kills the server after each write in the life of the addresses of two VMs: they get addresses, one asks for another
 * address, its record and its address are lost, and both are deleted. After the restart each step ends as it does
 * without a kill: no address is given twice, none changes unasked, and none is left behind.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { FULL_RUN } from '#test/support/full-run.ts';
import type { Loose } from '#test/support/test-api.ts';
import { aVm, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

/** Distance between two crash points. */
const STEP = FULL_RUN ? 1 : 23;
/** Fewer crash points mean that the sequence does not do what it should. */
const LEAST_POINTS = FULL_RUN ? 50 : 6;
const TIMEOUT_MS = FULL_RUN ? 600_000 : 60_000;
/** More writes than the sequence needs; beyond it, a controller writes forever. */
const MOST_WRITES = 300;

const NETWORK = {
  apiVersion: 'network.selfsame.io/v1',
  kind: 'GuestNetwork',
  metadata: { name: 'default' },
  spec: { subnets: ['10.244.0.0/16', 'fd00:10:244::/64'] },
};

function aMachine(name: string, runStrategy: string, address: string): Loose {
  const vm = aVm(name, { runStrategy });
  vm.metadata.annotations = { 'network.kubevirt.io/addresses': JSON.stringify({ default: [address] }) };
  return vm;
}

/** Applied twice, each step has the same effect as once: a client without an answer asks again. */
const sequence: Readonly<Record<string, (plane: VmPlane) => Promise<unknown>>> = {
  'the first VM starts': (plane) => plane.beginApply(aMachine('a', 'Always', '10.244.0.50')),
  'the second VM starts': (plane) => plane.beginApply(aMachine('b', 'Always', '10.244.0.60')),
  'the first VM asks for another address': (plane) => plane.beginApply(aMachine('a', 'Halted', '10.244.0.51')),
  'it starts again': (plane) => plane.beginApply(aMachine('a', 'Always', '10.244.0.51')),
  'the second VM stops': (plane) => plane.beginApply(aMachine('b', 'Halted', '10.244.0.60')),
  'it wants the address that is free now': (plane) => plane.beginApply(aMachine('b', 'Always', '10.244.0.50')),
  'the first VM is deleted': (plane) => plane.call('DELETE', urlOf('a')),
  'the second VM is deleted': (plane) => plane.call('DELETE', urlOf('b')),
};

const urlOf = (name: string) => `/apis/kubevirt.io/v1/namespaces/default/virtualmachines/${name}`;

/** Asserts what holds after each step; returns what must be equal in every run. */
async function checkStep(plane: VmPlane): Promise<Loose> {
  const held = await plane.list('NetworkAddress');
  for (const { spec } of held) {
    const vm = await plane.get('VirtualMachine', spec.owner.name);
    assert.equal(spec.owner.uid, vm.metadata.uid, `${spec.address} belongs to a VM that exists`);
  }
  const pods = (await plane.list('Pod')).filter(({ status }) => status.phase === 'Running');
  const used: string[] = pods.map(({ metadata }) => metadata.annotations['network.selfsame.io/addresses']);
  const records = await plane.list('VirtualMachineIdentity');
  return {
    held: held.map(({ spec }) => `${spec.owner.name} ${spec.address}`),
    used: used.toSorted(),
    recorded: records.map(({ metadata, spec }) => `${metadata.name} ${spec.interfaces[0].addresses}`),
  };
}

/** Runs all steps; the server is killed after `after` writes. */
async function runSequence(plane: VmPlane, after: number): Promise<{ seen: Record<string, Loose>; isCut: boolean }> {
  const seen: Record<string, Loose> = {};
  let isCut = false;
  const cut = plane.cutAfter(after);
  for (const [name, ask] of Object.entries(sequence)) {
    const running = (async () => {
      await ask(plane);
      await plane.settle();
    })();
    // After the kill it hangs or fails, as expected.
    running.catch(() => {});
    if ((await Promise.race([running, ...(isCut ? [] : [cut])])) === 'cut') {
      isCut = true;
      await plane.restartServer();
      await ask(plane);
      await plane.settle();
    }
    try {
      seen[name] = await checkStep(plane);
    } catch (error) {
      throw new Error(`killed after write ${after}: ${name}: ${(error as Error).message}`, { cause: error });
    }
  }
  if (!isCut) void plane.cutAfter(Infinity);
  return { seen, isCut };
}

test('no kill of the server doubles, changes or leaks an address', { timeout: TIMEOUT_MS }, async (t: TestContext) => {
  const plane = await startVmPlane(t, { nodes: 1 });
  await plane.apply(NETWORK);
  const undisturbed = await runSequence(plane, Infinity);
  const steps = Object.values(undisturbed.seen);
  assert.deepEqual(steps.at(-1), { held: [], used: [], recorded: [] }, 'nothing is left');
  // Nobody asked for the IPv6 addresses: they stay as they were at first.
  assert.deepEqual(steps[5]?.held, ['b 10.244.0.50', 'a 10.244.0.51', 'a fd00:10:244::32', 'b fd00:10:244::3c']);
  let points = 0;
  for (let after = 1, isCut = true; isCut; after += STEP) {
    assert.ok(after < MOST_WRITES, 'the sequence ends');
    const run = await runSequence(plane, after);
    assert.deepEqual(run.seen, undisturbed.seen, `killed after write ${after}`);
    ({ isCut } = run);
    if (isCut) points++;
  }
  t.diagnostic(`${points} points`);
  assert.ok(points >= LEAST_POINTS, `only ${points} points`);
});
