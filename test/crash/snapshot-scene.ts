/**
 * Snapshots and restores whose server is killed after a number of writes. Runs in a thread, without the test runner's
 * hooks on each promise, which take half of the time. Gets the work as workerData and posts the number of crash points.
 *
 * The VM has two disks, and its guest writes to both again at the time of the kill: a snapshot with data of two times is
 * found. It also has persistent state, which is always on exactly one claim.
 */
import assert from 'node:assert/strict';
import { parentPort, workerData } from 'node:worker_threads';
import { legacyUuid } from '#api/identity/legacy-uuid.ts';
import { VOLUME_NODE_ANNOTATION } from '#api/names.ts';
import { STATE_LABEL } from '#api/storage/persistent-state.ts';
import { STATE_CONFLICT } from '#api/storage/state-conflict.ts';
import { labelPatch, urlsOf } from '#test/support/protection.ts';
import { storePastAdmission, withoutFirmwareUuid } from '#test/support/old-objects.ts';
import {
  aRestore,
  aSnapshot,
  diskText,
  snapshotTexts,
  deleteAll,
  deleteEverything,
  writeDisks,
} from '#test/support/snapshots.ts';
import type { Loose } from '#test/support/test-api.ts';
import { aClaim, aVm, VmPlane } from '#test/support/vm-plane.ts';

/** More writes than any scenario needs; beyond it, a controller writes forever. */
const MAX_POINTS = 150;
/** Storage classes by volume: one volume that any node reaches, and one on a single node. */
const DISKS: Readonly<Record<string, string>> = { root: 'shared', logs: 'local' };
/** The VM before the request. */
interface Before {
  readonly uid: string;
  readonly firmware: Loose;
  readonly record: Loose;
  readonly machine: Loose;
  readonly starts: number;
}

interface Scenario {
  /** Makes the initial state, without a kill. */
  prepare(plane: VmPlane): Promise<Before>;
  ask(plane: VmPlane): Promise<unknown>;
  /** Kind and name of the object that the request creates: a client without an answer looks for it before it asks again. */
  readonly makes: readonly [kind: string, name: string];
  /** Acts as the guest while there is no server. */
  meanwhile?(plane: VmPlane): Promise<void>;
  /** Checks what holds at every moment, also between the restart and the end of the request. */
  atRestart?(plane: VmPlane): Promise<void>;
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
    await plane.beginApply(aClaim(`db-${disk}`, { storageClassName }));
  }
  await plane.apply(aVmWithDisks('db', { runStrategy: 'Always' }));
  await guestWrites(plane, 'precious');
  const { node, volume } = await placeOfState(plane, 'db');
  node.write(volume, 'sealed');
  return await readVm(plane);
}

async function takeSnapshot(plane: VmPlane): Promise<Before> {
  const before = await makeVm(plane);
  await plane.apply(aSnapshot('shot', 'db'));
  await verifySnapshot(plane);
  await guestWrites(plane, 'wiped');
  return before;
}

/** Returns the only claim that is marked as the state of the VM, with its volume and node. */
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

async function readVm(plane: VmPlane): Promise<Before> {
  const { metadata, spec } = await plane.get('VirtualMachine', 'db');
  return {
    uid: metadata.uid,
    firmware: spec.template.spec.domain.firmware,
    record: (await plane.get('VirtualMachineIdentity', 'db')).spec,
    machine: machineOf(plane, 'db'),
    starts: plane.starts.length,
  };
}

/** The machine as the guest sees it, without the paths of its disks and its state. */
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
    'the old state is deleted',
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
  const conflicts = (await plane.eventsOf(vm)).filter((event) => event.startsWith(STATE_CONFLICT));
  assert.deepEqual(conflicts, [], 'the claim of a restore causes no state conflict');
  const { status } = await plane.get('VirtualMachine', vm);
  assert.deepEqual([status.snapshotInProgress, status.restoreInProgress], [undefined, undefined]);
}

async function verifyDisks(plane: VmPlane, vm: string): Promise<void> {
  const { node, volume } = await placeOfState(plane, vm);
  assert.equal(node.read(volume), 'sealed', 'its state');
  for (const disk of Object.keys(DISKS)) assert.equal(await diskText(plane, vm, disk), 'precious', disk);
}

/** Starts the VM and checks that it has the identity and the disks of before. */
async function verifySelfsame(plane: VmPlane, before: Before): Promise<void> {
  const { spec } = await plane.get('VirtualMachine', 'db');
  assert.deepEqual(spec.template.spec.domain.firmware, before.firmware);
  assert.deepEqual((await plane.get('VirtualMachineIdentity', 'db')).spec, before.record);
  assert.equal(plane.starts.length, before.starts, 'it was not started meanwhile');
  assert.equal(await plane.runVerb('start', 'db'), '202');
  plane.guest('db');
  assert.equal(plane.starts.length, before.starts + 1);
  assert.deepEqual(machineOf(plane, 'db'), before.machine);
  await verifyDisks(plane, 'db');
}

const snapshotOfRunning: Scenario = {
  prepare: makeVm,
  ask: (plane) => plane.beginApply(aSnapshot('shot', 'db')),
  makes: ['VirtualMachineSnapshot', 'shot'],
  meanwhile: (plane) => guestWrites(plane, 'wiped'),
  async verify(plane, before) {
    await verifySnapshot(plane);
    const { root, logs, 'persistent-state-for-db': state } = await snapshotTexts(plane, 'shot');
    assert.equal(state, 'sealed');
    assert.match(root ?? 'nothing', /^(precious|wiped)$/);
    assert.equal(logs, root, 'all disks of the same time');
    assert.equal(plane.starts.length, before.starts, 'the guest was not restarted');
    assert.match(await plane.summaryOf('db'), /^Running, VMI Running, running/);
    await verifyFree(plane, 'db');
    assert.equal(await plane.runVerb('stop', 'db'), '202');
  },
};

const restoreInPlace: Scenario = {
  prepare: takeSnapshot,
  ask: (plane) => plane.beginApply(aRestore('back', 'db', 'shot', { targetReadinessPolicy: 'StopTarget' })),
  makes: ['VirtualMachineRestore', 'back'],
  async verify(plane, before) {
    const { metadata } = await verifyComplete(plane, 'db');
    assert.equal(metadata.uid, before.uid, 'the same object');
    assert.deepEqual(await plane.names('VirtualMachine'), ['db']);
    await verifySelfsame(plane, before);
  },
};

/** A protected VM never lacks a claim, and the data of the snapshot is always on some disk. */
const restoreOfProtected: Scenario = {
  async prepare(plane) {
    const before = await takeSnapshot(plane);
    await protect(plane, 'True');
    return before;
  },
  ask: restoreInPlace.ask,
  makes: restoreInPlace.makes,
  meanwhile: async (plane) => verifyData(plane),
  async atRestart(plane) {
    verifyData(plane);
    const vm = await plane.get('VirtualMachine', 'db');
    const { volumes } = vm.spec.template.spec;
    const needed = [
      ...volumes.map(({ persistentVolumeClaim }: Loose) => persistentVolumeClaim.claimName),
      vm.status.stateClaim?.name,
    ];
    for (const name of needed) {
      const { metadata } = await plane.get('PersistentVolumeClaim', name);
      assert.equal(metadata.deletionTimestamp, undefined, `claim ${name}, which the VM needs, is not being deleted`);
    }
  },
  async verify(plane, before) {
    await restoreInPlace.verify(plane, before);
    await protect(plane, null);
  },
};

async function protect(plane: VmPlane, value: string | null): Promise<void> {
  await plane.server.api.ok('PATCH', `${urlsOf('default').vms}/db`, { body: labelPatch(value) });
  await plane.settle();
}

/** Checks that the nodes have the data of the snapshot: that of both disks, and the persistent state. */
function verifyData(plane: VmPlane): void {
  const storages = new Set(plane.nodes.flatMap(({ disks }) => [disks.own, disks.shared]));
  const texts = [...storages].flatMap(({ snapshots }) => [...snapshots.values()].map(({ text }) => text));
  assert.deepEqual(texts.toSorted(), ['precious', 'precious', 'sealed'], 'the data of the snapshot');
}

const restoreOfDeleted: Scenario = {
  async prepare(plane) {
    const before = await takeSnapshot(plane);
    await deleteAll(plane, ['VirtualMachine', 'PersistentVolumeClaim']);
    return before;
  },
  ask: (plane) => plane.beginApply(aRestore('back', 'db', 'shot')),
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
  ask: (plane) => plane.beginApply(aRestore('back', 'copy', 'shot')),
  makes: ['VirtualMachineRestore', 'back'],
  async verify(plane, before) {
    const { spec } = await verifyComplete(plane, 'copy');
    const { uuid, serial } = spec.template.spec.domain.firmware;
    assert.notEqual(uuid, before.firmware.uuid);
    assert.notEqual(serial, before.firmware.serial);
    const renewed = (await plane.eventsOf('back')).filter((event) =>
      event.includes(`has the new firmware uuid ${uuid}`),
    );
    assert.equal(renewed.length, 1, 'reported once');
    const { metadata, spec: first } = await plane.get('VirtualMachine', 'db');
    assert.deepEqual([metadata.uid, first.template.spec.domain.firmware], [before.uid, before.firmware]);
    assert.match(await plane.summaryOf('db'), /^Running, VMI Running, running,/);
    assert.equal(plane.starts.length, before.starts);
    assert.equal(await plane.runVerb('start', 'copy'), '202');
    assert.equal(machineOf(plane, 'copy').firmware.uuid, uuid);
    assert.notDeepEqual(macsOf(machineOf(plane, 'copy')), macsOf(before.machine));
    await verifyDisks(plane, 'copy');
  },
};

const macsOf = ({ devices }: Loose): Loose[] => devices.map(({ macAddress }: Loose) => macAddress).filter(Boolean);

/** A VM that an older version left starts. */
const oldVm: Scenario = {
  prepare: makeVm,
  ask: (plane) => storePastAdmission(plane, withoutFirmwareUuid(aVm('old', { runStrategy: 'Always' }))),
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

/** Kills the server after a number of writes and starts it again; returns false if the request needed fewer writes. */
async function killDuring(
  plane: VmPlane,
  { ask, makes, meanwhile, atRestart }: Scenario,
  { after, agents }: Crash,
): Promise<boolean> {
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
  await meanwhile?.(plane);
  await plane.restartServer({ agents });
  await atRestart?.(plane);
  if ((await plane.find(...makes)) === undefined) await ask(plane);
  await plane.settle();
  return true;
}

async function runAllCrashPoints({ scenario: name, agents = false, from = 0, step = 1 }: Work): Promise<number> {
  const scenario: Scenario = scenarios[name];
  const plane = new VmPlane({});
  await plane.start();
  let points = 0;
  for (let after = from, cut = true; cut; after += step) {
    assert.ok(after < MAX_POINTS, 'the request completes');
    try {
      const before = await scenario.prepare(plane);
      cut = await killDuring(plane, scenario, { after, agents });
      await scenario.verify(plane, before);
      await deleteEverything(plane);
    } catch (error) {
      throw new Error(`killed after write ${after}: ${(error as Error).message}`, { cause: error });
    }
    if (cut) points++;
  }
  await plane.stop();
  return points;
}

const scenarios = {
  snapshotOfRunning,
  restoreInPlace,
  restoreOfProtected,
  restoreOfDeleted,
  restoreToAnotherName,
  oldVm,
};

export interface Work {
  readonly scenario: keyof typeof scenarios;
  /** Kills the agents together with the server. */
  readonly agents?: boolean;
  /** The first point, and the distance to the next one. */
  readonly from?: number;
  readonly step?: number;
}

parentPort?.postMessage(await runAllCrashPoints(workerData));
