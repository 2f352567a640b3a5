/**
 * The server is lost after each write of the life of an identity record: it is made, lost and rebuilt, left behind by its
 * VM, adopted, and deleted. The next server takes over, and each step ends as it does undisturbed: no cut leaves a VM
 * without its addresses, and none leaves a record behind.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { RECORD_FINALIZER } from '#api/names.ts';
import { FULL_RUN } from '#test/support/full-run.ts';
import { loseRecord } from '#test/support/lost-records.ts';
import { aSnapshot, removeEverything } from '#test/support/snapshots.ts';
import type { Loose } from '#test/support/test-api.ts';
import { aVm, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

/** From one point to the next. */
const STEP = FULL_RUN ? 1 : 22;
/** Fewer would mean that the story does not do what it tells of. */
const LEAST_POINTS = FULL_RUN ? 60 : 4;
/** Of all points together. */
const TIMEOUT_MS = FULL_RUN ? 600_000 : 60_000;
/** More than it has: past it, something writes for ever. */
const MOST_WRITES = 300;

interface Step {
  ask(plane: VmPlane): Promise<unknown>;
  /** Reports whether the step was taken: who got no answer looks before asking again. */
  isAsked(now: Moment, before: Moment): boolean;
}

/** What tells one moment of the story from another. */
interface Moment {
  readonly vm: Loose;
  readonly record: Loose;
  readonly snapshot: Loose;
}

async function momentOf(plane: VmPlane): Promise<Moment> {
  return {
    vm: await plane.find('VirtualMachine', 'db'),
    record: await plane.find('VirtualMachineIdentity', 'db'),
    snapshot: await plane.find('VirtualMachineSnapshot', 'nightly'),
  };
}

const isLost = (now: Moment, before: Moment) => now.record?.metadata.uid !== before.record.metadata.uid;
const isGoing = ({ vm }: Moment, before: Moment) =>
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

const story: Readonly<Record<string, Step>> = {
  'it starts': { ask: (plane) => plane.put(aMachine('Always')), isAsked: ({ vm }) => vm !== undefined },
  'its record is lost while it runs': { ask: (plane) => loseRecord(plane, 'db'), isAsked: isLost },
  'a snapshot is taken': {
    ask: (plane) => plane.put(aSnapshot('nightly', 'db')),
    isAsked: ({ snapshot }) => snapshot !== undefined,
  },
  'it stops': {
    ask: (plane) => plane.put(aMachine('Halted')),
    isAsked: ({ vm }) => vm.spec.runStrategy === 'Halted',
  },
  'its record is lost at rest': { ask: (plane) => loseRecord(plane, 'db'), isAsked: isLost },
  'it starts again': {
    ask: (plane) => plane.put(aMachine('Always')),
    isAsked: ({ vm }) => vm.spec.runStrategy === 'Always',
  },
  'it is orphaned': {
    ask: (plane) => plane.drop('VirtualMachine', 'db', { propagationPolicy: 'Orphan' }),
    isAsked: isGoing,
  },
  'the next VM of its name adopts what is left': {
    ask: (plane) => plane.put(aMachine('Always')),
    isAsked: ({ vm }) => vm !== undefined,
  },
  'it is deleted in the foreground': {
    ask: (plane) => plane.drop('VirtualMachine', 'db', { propagationPolicy: 'Foreground' }),
    isAsked: isGoing,
  },
};

/** Returns what must be the same in every run; what must hold in each is checked. */
async function look(plane: VmPlane): Promise<Loose> {
  const { vm, record } = await momentOf(plane);
  assert.equal(vm?.metadata.deletionTimestamp, undefined, 'the VM does not hang');
  assert.equal(record?.metadata.deletionTimestamp, undefined, 'the record does not hang');
  if (record === undefined) return { vm: vm !== undefined };
  assert.deepEqual(record.metadata.finalizers, [RECORD_FINALIZER]);
  if (vm !== undefined) {
    assert.equal(record.metadata.ownerReferences[0].uid, vm.metadata.uid);
    assert.equal(vm.status.identityRecordUID, record.metadata.uid);
    assert.ok(!vm.status.conditions.some(({ type }: Loose) => type === 'IdentityRecordLost' || type === 'Failure'));
  }
  const rows: string[] = record.status.devices.map(({ id, address }: Loose) => `${id} ${JSON.stringify(address)}`);
  // Each run has a new VM, with another uuid and other MAC addresses.
  const nics = record.spec.interfaces.map(({ name }: Loose) => name);
  return { vm: vm !== undefined, guests: plane.guests('db').length, rows: rows.toSorted(), nics };
}

/** Tells the story on a plane that has nothing on it; `after`: the server is lost after so many writes. */
async function tell(plane: VmPlane, after: number): Promise<{ seen: Record<string, Loose>; isCut: boolean }> {
  const seen: Record<string, Loose> = {};
  let isCut = false;
  const cut = plane.cutAfter(after);
  for (const [name, { ask, isAsked }] of Object.entries(story)) {
    const before = await momentOf(plane);
    const running = (async () => {
      await ask(plane);
      await plane.settle();
    })();
    // After the cut it hangs or fails, as it must.
    running.catch(() => {});
    if ((await Promise.race([running, ...(isCut ? [] : [cut])])) === 'cut') {
      isCut = true;
      await plane.restartServer();
      if (!isAsked(await momentOf(plane), before)) await ask(plane);
      await plane.settle();
    }
    try {
      seen[name] = await look(plane);
    } catch (error) {
      throw new Error(`lost after write ${after}: ${name}: ${(error as Error).message}`, { cause: error });
    }
  }
  if (!isCut) void plane.cutAfter(Infinity);
  await removeEverything(plane);
  return { seen, isCut };
}

test('no cut loses a record or leaves one behind', { timeout: TIMEOUT_MS }, async (t: TestContext) => {
  const plane = await startVmPlane(t);
  const undisturbed = await tell(plane, Infinity);
  const steps = Object.values(undisturbed.seen);
  assert.deepEqual(steps.at(-1), { vm: false }, 'VM and record are gone');
  for (const { rows } of steps.slice(0, -1)) assert.deepEqual(rows, steps[0].rows, 'the addresses never change');
  let points = 0;
  for (let after = 1, isCut = true; isCut; after += STEP) {
    assert.ok(after < MOST_WRITES, 'it comes to its end');
    const run = await tell(plane, after);
    assert.deepEqual(run.seen, undisturbed.seen, `lost after write ${after}`);
    ({ isCut } = run);
    if (isCut) points++;
  }
  t.diagnostic(`${points} points`);
  assert.ok(points >= LEAST_POINTS, `only ${points} points`);
});
