/**
 * Snapshots and restores whose server is lost after so many writes; in a thread of its own, where no test runner follows
 * each promise: that takes half of the time. Is told the work, and tells how many points there were.
 *
 * The VM has two disks, and its guest writes to both again at the moment of the crash: a snapshot that holds what was on
 * them at two moments is seen. It keeps state, too, which one claim holds at any time.
 */
import assert from 'node:assert/strict';
import { parentPort, workerData } from 'node:worker_threads';
import { legacyUuid } from '#api/legacy-uuid.ts';
import { VOLUME_NODE_ANNOTATION } from '#api/names.ts';
import { STATE_LABEL } from '#api/persistent-state.ts';
import { STATE_CONFLICT } from '#api/state-conflict.ts';
import { storeAsIs, withoutFirmwareUuid } from '#test/support/old-objects.ts';
import {
  aRestore,
  aSnapshot,
  diskOf,
  heldBy,
  removeAll,
  removeEverything,
  writeDisks,
} from '#test/support/snapshots.ts';
import type { Loose } from '#test/support/test-api.ts';
import { aClaim, aVm, VmPlane } from '#test/support/vm-plane.ts';

/** More than anything here has: past it, something writes for ever. */
const MAX_POINTS = 150;
/** By the volume: one that any node reaches, one that lies on a node. */
const DISKS: Readonly<Record<string, string>> = { root: 'shared', logs: 'local' };
/** Who the VM was before anything was asked for. */
interface Before {
  readonly uid: string;
  readonly firmware: Loose;
  readonly record: Loose;
  readonly machine: Loose;
  readonly starts: number;
}

interface Scenario {
  /** What is there before; not cut. */
  prepare(plane: VmPlane): Promise<Before>;
  ask(plane: VmPlane): Promise<unknown>;
  /** What is found where it was taken, as kind and name: somebody who got no answer looks before asking again. */
  readonly makes: readonly [kind: string, name: string];
  /** What the guest does while there is no server. */
  meanwhile?(plane: VmPlane): Promise<void>;
  verify(plane: VmPlane, before: Before): Promise<void>;
}

function aVmWithDisks(name: string, spec: Loose): Loose {
  const disks = Object.keys(DISKS);
  return aVm(name, spec, {
    domain: {
      devices: { tpm: { persistent: true }, disks: disks.map((disk) => ({ name: disk, disk: { bus: 'virtio' } })) },
    },
    volumes: disks.map((disk) => ({ name: disk, persistentVolumeClaim: { claimName: `${name}-${disk}` } })),
  });
}

async function makeVm(plane: VmPlane): Promise<Before> {
  for (const [disk, storageClassName] of Object.entries(DISKS)) {
    await plane.put(aClaim(`db-${disk}`, { storageClassName }));
  }
  await plane.apply(aVmWithDisks('db', { runStrategy: 'Always' }));
  await guestWrites(plane, 'precious');
  const { node, volume } = await placeOfState(plane, 'db');
  node.write(volume, 'sealed');
  return await remember(plane);
}

async function takeSnapshot(plane: VmPlane): Promise<Before> {
  const before = await makeVm(plane);
  await plane.apply(aSnapshot('shot', 'db'));
  await verifySnapshot(plane);
  await guestWrites(plane, 'wiped');
  return before;
}

/** Of the only claim that is marked for it. */
async function placeOfState(plane: VmPlane, vm: string) {
  const claims = await plane.list('PersistentVolumeClaim');
  const [claim, ...more] = claims.filter(({ metadata }) => metadata.labels?.[STATE_LABEL] === vm);
  assert.ok(claim !== undefined && more.length === 0, `${vm} has one claim for its state`);
  const { metadata } = await plane.get('PersistentVolume', claim.spec.volumeName);
  const home = metadata.annotations[VOLUME_NODE_ANNOTATION] ?? plane.nodes[0]!.name;
  return { claim, node: plane.node(home), volume: metadata.name as string };
}

async function guestWrites(plane: VmPlane, text: string): Promise<void> {
  await writeDisks(plane, 'db', Object.fromEntries(Object.keys(DISKS).map((disk) => [disk, text])));
}

async function remember(plane: VmPlane): Promise<Before> {
  const { metadata, spec } = await plane.get('VirtualMachine', 'db');
  return {
    uid: metadata.uid,
    firmware: spec.template.spec.domain.firmware,
    record: (await plane.get('VirtualMachineIdentity', 'db')).spec,
    machine: machineOf(plane, 'db'),
    starts: plane.starts.length,
  };
}

/** As the guest knows it: all but where its disks and its state lie. */
function machineOf(plane: VmPlane, vm: string): Loose {
  const { devices, state: _, ...machine } = plane.startsOf(vm).at(-1)!.machine;
  return { ...machine, devices: devices.map((device: Loose) => ({ ...device, source: undefined })) };
}

async function verifySnapshot(plane: VmPlane): Promise<void> {
  const { status } = await plane.get('VirtualMachineSnapshot', 'shot');
  assert.deepEqual([status.phase, status.readyToUse], ['Succeeded', true], JSON.stringify(status));
  assert.ok(status.indications.includes('Online'));
  const contents = await plane.list('VirtualMachineSnapshotContent');
  assert.deepEqual(
    contents.map(({ metadata }) => metadata.name),
    [status.virtualMachineSnapshotContentName],
  );
  for (const kind of ['VolumeSnapshot', 'VolumeSnapshotContent']) {
    assert.equal((await plane.list(kind)).length, Object.keys(DISKS).length + 1, kind);
  }
}

async function verifyComplete(plane: VmPlane, vm: string): Promise<Loose> {
  const { status } = await plane.get('VirtualMachineRestore', 'back');
  assert.equal(status?.complete, true, JSON.stringify(status));
  const restored = await plane.get('VirtualMachine', vm);
  assert.equal(restored.metadata.uid, status.targetUID);
  await verifyFree(plane, vm);
  const { volumes } = restored.spec.template.spec;
  for (const { persistentVolumeClaim } of volumes) {
    const { metadata } = await plane.get('PersistentVolumeClaim', persistentVolumeClaim.claimName);
    const [owner] = metadata.ownerReferences;
    assert.deepEqual([owner.kind, owner.uid, owner.controller], ['VirtualMachine', restored.metadata.uid, true]);
  }
  const claims = await plane.list('PersistentVolumeClaim');
  const states = claims.filter(({ metadata }) => metadata.name.startsWith(`persistent-state-for-${vm}-`));
  assert.deepEqual(
    states.map(({ metadata: { ownerReferences, labels } }) => [ownerReferences[0].uid, labels[STATE_LABEL]]),
    [[restored.metadata.uid, vm]],
    'the old state is gone',
  );
  assert.deepEqual(
    status.restores.map(({ persistentVolumeClaim }: Loose) => persistentVolumeClaim),
    [
      ...volumes.map(({ persistentVolumeClaim }: Loose) => persistentVolumeClaim.claimName),
      ...states.map(({ metadata }) => metadata.name),
    ],
  );
  return restored;
}

async function verifyFree(plane: VmPlane, vm: string): Promise<void> {
  const conflicts = (await plane.events(vm)).filter((event) => event.startsWith(STATE_CONFLICT));
  assert.deepEqual(conflicts, [], 'a claim that a restore has for a while is nobody else’s');
  const { status } = await plane.get('VirtualMachine', vm);
  assert.deepEqual([status.snapshotInProgress, status.restoreInProgress], [undefined, undefined]);
}

async function verifyDisks(plane: VmPlane, vm: string): Promise<void> {
  const { node, volume } = await placeOfState(plane, vm);
  assert.equal(node.read(volume), 'sealed', 'its state');
  for (const disk of Object.keys(DISKS)) assert.equal(await diskOf(plane, vm, disk), 'precious', disk);
}

/** Started by the API, it is who it was, with all that was on its disks. */
async function verifySelfsame(plane: VmPlane, before: Before): Promise<void> {
  const { spec } = await plane.get('VirtualMachine', 'db');
  assert.deepEqual(spec.template.spec.domain.firmware, before.firmware);
  assert.deepEqual((await plane.get('VirtualMachineIdentity', 'db')).spec, before.record);
  assert.equal(plane.starts.length, before.starts, 'nobody started it meanwhile');
  assert.equal(await plane.ask('start', 'db'), '202');
  plane.guest('db');
  assert.equal(plane.starts.length, before.starts + 1);
  assert.deepEqual(machineOf(plane, 'db'), before.machine);
  await verifyDisks(plane, 'db');
}

const snapshotOfRunning: Scenario = {
  prepare: makeVm,
  ask: (plane) => plane.put(aSnapshot('shot', 'db')),
  makes: ['VirtualMachineSnapshot', 'shot'],
  meanwhile: (plane) => guestWrites(plane, 'wiped'),
  async verify(plane, before) {
    await verifySnapshot(plane);
    const { root, logs, 'persistent-state-for-db': state } = await heldBy(plane, 'shot');
    assert.equal(state, 'sealed');
    assert.match(root ?? 'nothing', /^(precious|wiped)$/);
    assert.equal(logs, root, 'all disks of one moment');
    assert.equal(plane.starts.length, before.starts, 'the guest was not restarted');
    assert.match(await plane.shown('db'), /^Running, VMI Running, running/);
    await verifyFree(plane, 'db');
    assert.equal(await plane.ask('stop', 'db'), '202');
  },
};

const restoreInPlace: Scenario = {
  prepare: takeSnapshot,
  ask: (plane) => plane.put(aRestore('back', 'db', 'shot', { targetReadinessPolicy: 'StopTarget' })),
  makes: ['VirtualMachineRestore', 'back'],
  async verify(plane, before) {
    const { metadata } = await verifyComplete(plane, 'db');
    assert.equal(metadata.uid, before.uid, 'the same object');
    assert.deepEqual(await plane.names('VirtualMachine'), ['db']);
    await verifySelfsame(plane, before);
  },
};

const restoreOfDeleted: Scenario = {
  async prepare(plane) {
    const before = await takeSnapshot(plane);
    await removeAll(plane, ['VirtualMachine', 'PersistentVolumeClaim']);
    return before;
  },
  ask: (plane) => plane.put(aRestore('back', 'db', 'shot')),
  makes: ['VirtualMachineRestore', 'back'],
  async verify(plane, before) {
    await verifyComplete(plane, 'db');
    assert.deepEqual(await plane.names('VirtualMachine'), ['db']);
    assert.deepEqual(await plane.names('VirtualMachineIdentity'), ['db']);
    await verifySelfsame(plane, before);
  },
};

const restoreToAnotherName: Scenario = {
  prepare: takeSnapshot,
  ask: (plane) => plane.put(aRestore('back', 'copy', 'shot')),
  makes: ['VirtualMachineRestore', 'back'],
  async verify(plane, before) {
    const { spec } = await verifyComplete(plane, 'copy');
    const { uuid, serial } = spec.template.spec.domain.firmware;
    assert.notEqual(uuid, before.firmware.uuid);
    assert.notEqual(serial, before.firmware.serial);
    const told = (await plane.events('back')).filter((event) => event.includes(`has the new firmware uuid ${uuid}`));
    assert.equal(told.length, 1, 'told once');
    const { metadata, spec: first } = await plane.get('VirtualMachine', 'db');
    assert.deepEqual([metadata.uid, first.template.spec.domain.firmware], [before.uid, before.firmware]);
    assert.match(await plane.shown('db'), /^Running, VMI Running, running,/);
    assert.equal(plane.starts.length, before.starts);
    assert.equal(await plane.ask('start', 'copy'), '202');
    assert.equal(machineOf(plane, 'copy').firmware.uuid, uuid);
    assert.notDeepEqual(macsOf(machineOf(plane, 'copy')), macsOf(before.machine));
    await verifyDisks(plane, 'copy');
  },
};

const macsOf = ({ devices }: Loose): Loose[] => devices.map(({ macAddress }: Loose) => macAddress).filter(Boolean);

/** One that an older version left, and that starts. */
const oldVm: Scenario = {
  prepare: makeVm,
  ask: (plane) => storeAsIs(plane, withoutFirmwareUuid(aVm('old', { runStrategy: 'Always' }))),
  makes: ['VirtualMachine', 'old'],
  async verify(plane, before) {
    const { metadata, spec } = await plane.get('VirtualMachine', 'old');
    const { uuid, serial } = spec.template.spec.domain.firmware;
    assert.deepEqual([uuid, serial], [legacyUuid('old'), undefined]);
    assert.equal(metadata.generation, 2, 'written once');
    assert.equal(plane.starts.length, before.starts + 1);
    assert.equal(machineOf(plane, 'old').firmware.uuid, legacyUuid('old'));
    assert.equal((await plane.get('VirtualMachineIdentity', 'old')).spec.firmware.uuid, legacyUuid('old'));
  },
};

interface Crash {
  readonly after: number;
  readonly agents: boolean;
}

/** Loses the server after so many writes, and starts another; false where all was done with fewer. */
async function isCutWhile(
  plane: VmPlane,
  { ask, makes, meanwhile }: Scenario,
  { after, agents }: Crash,
): Promise<boolean> {
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
  await meanwhile?.(plane);
  await plane.restartServer({ agents });
  if ((await plane.find(...makes)) === undefined) await ask(plane);
  await plane.settle();
  return true;
}

async function throughEveryCrash({ scenario: name, agents = false, from = 0, step = 1 }: Work): Promise<number> {
  const scenario: Scenario = scenarios[name];
  const plane = new VmPlane({});
  await plane.start();
  let points = 0;
  for (let after = from, cut = true; cut; after += step) {
    assert.ok(after < MAX_POINTS, 'it comes to its end');
    try {
      const before = await scenario.prepare(plane);
      cut = await isCutWhile(plane, scenario, { after, agents });
      await scenario.verify(plane, before);
      await removeEverything(plane);
    } catch (error) {
      throw new Error(`cut after write ${after}: ${(error as Error).message}`, { cause: error });
    }
    if (cut) points++;
  }
  await plane.stop();
  return points;
}

const scenarios = { snapshotOfRunning, restoreInPlace, restoreOfDeleted, restoreToAnotherName, oldVm };

export interface Work {
  readonly scenario: keyof typeof scenarios;
  /** Whether the agents are lost with the server. */
  readonly agents?: boolean;
  /** The first point, and how many points further the next one is. */
  readonly from?: number;
  readonly step?: number;
}

parentPort?.postMessage(await throughEveryCrash(workerData));
