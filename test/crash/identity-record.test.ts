/**
 * Kills the server after each write in the life of an identity record: it is created, lost and rebuilt, orphaned by its
 * VM, adopted, and deleted. After the restart each step ends as it does without a kill: every VM has its addresses, and
 * no record is left behind.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { RECORD_FINALIZER } from '#api/names.ts';
import { FULL_RUN } from '#test/support/full-run.ts';
import { deleteStoredRecord } from '#test/support/stored-records.ts';
import { aSnapshot, deleteEverything } from '#test/support/snapshots.ts';
import type { Loose } from '#test/support/test-api.ts';
import { aVm, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

/** Distance between two crash points. */
const STEP = FULL_RUN ? 1 : 22;
/** Fewer crash points mean that the sequence does not do what it should. */
const LEAST_POINTS = FULL_RUN ? 60 : 4;
/** For all crash points together. */
const TIMEOUT_MS = FULL_RUN ? 600_000 : 60_000;
/** More writes than the sequence needs; beyond it, a controller writes forever. */
const MOST_WRITES = 300;

interface Step {
  ask(plane: VmPlane): Promise<unknown>;
  /** Reports whether the request took effect: a client without an answer checks before it asks again. */
  isDone(now: Objects, before: Objects): boolean;
}

/** The objects from which a client sees which steps took effect. */
interface Objects {
  readonly vm: Loose;
  readonly record: Loose;
  readonly snapshot: Loose;
}

async function readObjects(plane: VmPlane): Promise<Objects> {
  return {
    vm: await plane.find('VirtualMachine', 'db'),
    record: await plane.find('VirtualMachineIdentity', 'db'),
    snapshot: await plane.find('VirtualMachineSnapshot', 'nightly'),
  };
}

const isRecordLost = (now: Objects, before: Objects) => now.record?.metadata.uid !== before.record.metadata.uid;
const isDeleted = ({ vm }: Objects, before: Objects) =>
  vm?.metadata.uid !== before.vm.metadata.uid || vm.metadata.deletionTimestamp !== undefined;

function aMachine(runStrategy: string): Loose {
  const disks = ['root', 'data'];
  return aVm(
    'db',
    { runStrategy },
    {
      domain: { devices: { disks: disks.map((name) => ({ name, disk: { bus: 'virtio' } })) } },
      volumes: disks.map((name) => ({ name, emptyDisk: { capacity: '1Mi' } })),
    },
  );
}

const sequence: Readonly<Record<string, Step>> = {
  'it starts': { ask: (plane) => plane.beginApply(aMachine('Always')), isDone: ({ vm }) => vm !== undefined },
  'its record is lost while it runs': { ask: (plane) => deleteStoredRecord(plane, 'db'), isDone: isRecordLost },
  'a snapshot is taken': {
    ask: (plane) => plane.beginApply(aSnapshot('nightly', 'db')),
    isDone: ({ snapshot }) => snapshot !== undefined,
  },
  'it stops': {
    ask: (plane) => plane.beginApply(aMachine('Halted')),
    isDone: ({ vm }) => vm.spec.runStrategy === 'Halted',
  },
  'its record is lost at rest': { ask: (plane) => deleteStoredRecord(plane, 'db'), isDone: isRecordLost },
  'it starts again': {
    ask: (plane) => plane.beginApply(aMachine('Always')),
    isDone: ({ vm }) => vm.spec.runStrategy === 'Always',
  },
  'it is orphaned': {
    ask: (plane) => plane.beginDelete('VirtualMachine', 'db', { propagationPolicy: 'Orphan' }),
    isDone: isDeleted,
  },
  'the next VM of its name adopts what is left': {
    ask: (plane) => plane.beginApply(aMachine('Always')),
    isDone: ({ vm }) => vm !== undefined,
  },
  'it is deleted in the foreground': {
    ask: (plane) => plane.beginDelete('VirtualMachine', 'db', { propagationPolicy: 'Foreground' }),
    isDone: isDeleted,
  },
};

/** Asserts what holds after each step; returns what must be equal in every run. */
async function checkStep(plane: VmPlane): Promise<Loose> {
  const { vm, record } = await readObjects(plane);
  assert.equal(vm?.metadata.deletionTimestamp, undefined, 'the VM is not stuck in deletion');
  assert.equal(record?.metadata.deletionTimestamp, undefined, 'the record is not stuck in deletion');
  if (record === undefined) return { vm: vm !== undefined };
  assert.deepEqual(record.metadata.finalizers, [RECORD_FINALIZER]);
  if (vm !== undefined) {
    assert.equal(record.metadata.ownerReferences[0].uid, vm.metadata.uid);
    assert.equal(vm.status.identityRecordUID, record.metadata.uid);
    assert.ok(!vm.status.conditions.some(({ type }: Loose) => type === 'IdentityRecordLost' || type === 'Failure'));
  }
  const rows: string[] = record.status.devices.map(({ id, address }: Loose) => `${id} ${JSON.stringify(address)}`);
  // Each run has a new VM with another UUID and other MAC addresses.
  const nics = record.spec.interfaces.map(({ name }: Loose) => name);
  return { vm: vm !== undefined, guests: plane.guests('db').length, rows: rows.toSorted(), nics };
}

/** Runs all steps on an empty plane; the server is killed after `after` writes. */
async function runSequence(plane: VmPlane, after: number): Promise<{ seen: Record<string, Loose>; isCut: boolean }> {
  const seen: Record<string, Loose> = {};
  let isCut = false;
  const cut = plane.cutAfter(after);
  for (const [name, { ask, isDone }] of Object.entries(sequence)) {
    const before = await readObjects(plane);
    const running = (async () => {
      await ask(plane);
      await plane.settle();
    })();
    // After the kill it hangs or fails, as expected.
    running.catch(() => {});
    if ((await Promise.race([running, ...(isCut ? [] : [cut])])) === 'cut') {
      isCut = true;
      await plane.restartServer();
      if (!isDone(await readObjects(plane), before)) await ask(plane);
      await plane.settle();
    }
    try {
      seen[name] = await checkStep(plane);
    } catch (error) {
      throw new Error(`killed after write ${after}: ${name}: ${(error as Error).message}`, { cause: error });
    }
  }
  if (!isCut) void plane.cutAfter(Infinity);
  await deleteEverything(plane);
  return { seen, isCut };
}

test('no kill of the server loses a record or leaves one behind', { timeout: TIMEOUT_MS }, async (t: TestContext) => {
  const plane = await startVmPlane(t);
  const undisturbed = await runSequence(plane, Infinity);
  const steps = Object.values(undisturbed.seen);
  assert.deepEqual(steps.at(-1), { vm: false }, 'VM and record are gone');
  for (const { rows } of steps.slice(0, -1)) assert.deepEqual(rows, steps[0].rows, 'the addresses never change');
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
