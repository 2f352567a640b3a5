/**
 * Kills the server after each write of a sequence of hotplugs: alone or, at every second write, with all agents. After
 * the restart each step ends as it does without a kill: the guest has the devices of the template, each at its address,
 * the record agrees, nothing is left waiting, and no claim is held for a guest that does not have it. The guest keeps
 * running.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import type { Device } from '#node/hardware/domain-definition.ts';
import { FULL_RUN } from '#test/support/full-run.ts';
import { deleteEverything } from '#test/support/snapshots.ts';
import { aNetworkDefinition } from '#test/support/secondary-networks.ts';
import type { Loose } from '#test/support/test-api.ts';
import { aClaim, aVm, VmPlane } from '#test/support/vm-plane.ts';

const SUBRESOURCES = '/apis/subresources.kubevirt.io/v1/namespaces/default';
const HOTPLUGGED = 'selfsame.io/hotplugged';
/** Distance between two crash points; the two runs begin at different points. */
const STEP = FULL_RUN ? 2 : 6;
/** Fewer crash points mean that the sequence does not do what it should. */
const LEAST_POINTS = FULL_RUN ? 20 : 7;
/** More writes than the sequence needs; beyond it, a controller writes forever. */
const MOST_WRITES = 120;

interface Step {
  ask(plane: VmPlane): Promise<unknown>;
  /** Reports whether the request took effect: a client without an answer checks before it asks again. */
  isDone(template: Loose): boolean;
}

const sequence: Readonly<Record<string, Step>> = {
  'a volume is added': {
    ask: (plane) =>
      callVerb(plane, 'addvolume', {
        name: 'data',
        disk: { disk: { bus: 'scsi' }, serial: 'DATA' },
        volumeSource: { persistentVolumeClaim: { claimName: 'data', hotpluggable: true } },
      }),
    isDone: hasVolume,
  },
  'it is removed': {
    ask: (plane) => callVerb(plane, 'removevolume', { name: 'data' }),
    isDone: (template) => !hasVolume(template),
  },
  'an interface is added': {
    ask: (plane) => plane.beginApply(withInterfaces({ name: 'a' }, { name: 'b' })),
    isDone: (template) => stateOf(template, 'b') === 'up',
  },
  'it is set to absent': {
    ask: (plane) => plane.beginApply(withInterfaces({ name: 'a' }, { name: 'b', state: 'absent' })),
    isDone: (template) => stateOf(template, 'b') === 'absent',
  },
  'it is set to up again': {
    ask: (plane) => plane.beginApply(withInterfaces({ name: 'a' }, { name: 'b' })),
    isDone: (template) => stateOf(template, 'b') === 'up',
  },
};

async function callVerb(plane: VmPlane, name: string, body: Loose): Promise<void> {
  const { status, text } = await plane.call('PUT', `${SUBRESOURCES}/virtualmachines/db/${name}`, { body });
  assert.equal(status, 202, text);
}

function hasVolume({ volumes = [] }: Loose): boolean {
  return volumes.some(({ name }: Loose) => name === 'data');
}

function stateOf({ domain }: Loose, nic: string): string | undefined {
  const found = domain.devices.interfaces.find(({ name }: Loose) => name === nic);
  return found && (found.state ?? 'up');
}

function interfacesOf(nics: readonly Loose[]): Loose {
  return {
    domain: { devices: { interfaces: nics.map((nic) => ({ bridge: {}, ...nic })) } },
    networks: nics.map(({ name }) => ({ name, multus: { networkName: `br-${name}` } })),
  };
}

function withInterfaces(...nics: Loose[]): Loose {
  return { kind: 'VirtualMachine', metadata: { name: 'db' }, spec: { template: { spec: interfacesOf(nics) } } };
}

/** The running instance before the first step. */
interface Before {
  readonly instance: string;
  readonly starts: number;
}

async function prepare(plane: VmPlane): Promise<Before> {
  // The volume is created on the node that first uses it.
  await plane.beginApply(aClaim('data', { storageClassName: 'local' }));
  for (const name of ['a', 'b']) await plane.beginApply(aNetworkDefinition(`br-${name}`));
  const cold = {
    disks: [
      { name: 'root', disk: { bus: 'virtio' } },
      { name: 'log', disk: { bus: 'scsi' } },
    ],
    volumes: ['root', 'log'].map((name) => ({ name, emptyDisk: { capacity: '1Mi' } })),
  };
  const { domain, networks } = interfacesOf([{ name: 'a' }]);
  const devices = { ...domain.devices, disks: cold.disks };
  await plane.apply(aVm('db', { runStrategy: 'Always' }, { domain: { devices }, networks, volumes: cold.volumes }));
  const { metadata } = await plane.get('VirtualMachineInstance', 'db');
  return { instance: metadata.uid, starts: plane.starts.length };
}

const isDiskOrNic = ({ type }: Device) => type === 'disk' || type === 'interface';

/** Returns the addresses of the disks and interfaces of the guest. */
function placesOf(plane: VmPlane): Record<string, Loose> {
  const devices = plane.guest('db').definition.devices.filter(isDiskOrNic);
  return Object.fromEntries(devices.map(({ id, address }) => [id, address]));
}

function devicesOf({ domain }: Loose): string[] {
  const { disks = [], interfaces = [] } = domain.devices;
  const up = interfaces.filter(({ state }: Loose) => state !== 'absent');
  return [...disks.map(({ name }: Loose) => `disk-${name}`), ...up.map(({ name }: Loose) => `nic-${name}`)];
}

/** Asserts what holds after each step; returns what must be equal in every run. */
async function checkStep(plane: VmPlane, { instance, starts }: Before): Promise<Loose> {
  const template = (await plane.get('VirtualMachine', 'db')).spec.template.spec;
  const places = placesOf(plane);
  assert.deepEqual(Object.keys(places).sort(), devicesOf(template).sort(), 'the guest has what the template says');
  assert.equal(plane.starts.length, starts, 'the guest was not started again');

  const { metadata, status } = await plane.get('VirtualMachineInstance', 'db');
  assert.deepEqual([metadata.uid, status.phase], [instance, 'Running']);
  const unfinished = [
    ...(status.hotplug ?? []).filter(({ phase }: Loose) => phase !== 'Ready'),
    ...status.conditions.filter(({ type }: Loose) => type === 'DeviceChangePending'),
    ...(status.volumeStatus ?? []).filter(({ phase }: Loose) => phase !== undefined && phase !== 'Ready'),
    ...(await plane.list('Pod')).filter((pod) => pod.status.phase === 'Pending'),
  ];
  assert.deepEqual(unfinished, [], 'nothing is left waiting');
  const { status: vm } = await plane.get('VirtualMachine', 'db');
  assert.ok(!vm.conditions.some(({ type }: Loose) => type === 'RestartRequired' || type === 'Failure'));

  const record = (await plane.get('VirtualMachineIdentity', 'db')).status;
  assert.equal(record.deviceHash, status.deviceHash);
  const rows: Loose[] = record.devices.filter(isDiskOrNic);
  const plugged = rows.filter((row) => row.plugged !== false);
  assert.deepEqual(Object.fromEntries(plugged.map(({ id, address }) => [id, address])), places, 'the record');

  const { finalizers = [] } = (await plane.get('PersistentVolumeClaim', 'data')).metadata;
  assert.equal(finalizers.includes(HOTPLUGGED), 'disk-data' in places, 'the claim is held while the guest has it');
  const absent = rows.filter((row) => row.plugged === false).map(({ id, address }) => [id, address]);
  return { places, absent };
}

/** Asserts what holds at every time, even at the kill: the record is written before the instance. */
async function checkRecord(plane: VmPlane): Promise<void> {
  const { spec } = await plane.get('VirtualMachineInstance', 'db');
  const record = await plane.get('VirtualMachineIdentity', 'db');
  const template = (await plane.get('VirtualMachine', 'db')).spec.template.spec;
  for (const { name, macAddress, state } of spec.domain.devices.interfaces) {
    const recorded = record.spec.interfaces.find((nic: Loose) => nic.name === name);
    assert.equal(macAddress, recorded?.macAddress, `the MAC of ${name} is on record`);
    const row = record.status.devices.find(({ id }: Loose) => id === `nic-${name}`);
    // A device that returns is in the record first, too.
    const isLeaving = state === 'absent' && stateOf(template, name) === 'absent';
    if (isLeaving) assert.equal(row?.plugged, false, `the record says that ${name} is unplugged`);
  }
}

function macOf(plane: VmPlane, id: string): string | undefined {
  const device = plane.guest('db').definition.devices.find((one) => one.id === id);
  return device?.type === 'interface' ? device.macAddress : undefined;
}

interface Run {
  /** The result of each step. */
  readonly seen: Record<string, Loose>;
  readonly isCut: boolean;
}

/** Runs all steps on an empty plane; the server is killed after `after` writes. */
async function runSequence(plane: VmPlane, { after, agents }: { after: number; agents: boolean }): Promise<Run> {
  const before = await prepare(plane);
  const seen: Record<string, Loose> = {};
  const macs = new Set<string>();
  let isCut = false;
  const cut = plane.cutAfter(after);
  for (const [name, { ask, isDone }] of Object.entries(sequence)) {
    const running = askAndSettle(plane, ask);
    if ((await Promise.race([running, ...(isCut ? [] : [cut])])) === 'cut') {
      isCut = true;
      await checkRecord(plane);
      await plane.restartServer({ agents });
      const { spec } = await plane.get('VirtualMachine', 'db');
      if (!isDone(spec.template.spec)) await ask(plane);
      await plane.settle();
    }
    try {
      seen[name] = await checkStep(plane, before);
      await checkRecord(plane);
    } catch (error) {
      throw new Error(`${name}: ${(error as Error).message}`, { cause: error });
    }
    const mac = macOf(plane, 'nic-b');
    if (mac !== undefined) macs.add(mac);
  }
  if (!isCut) void plane.cutAfter(Infinity);
  assert.equal(macs.size, 1, 'the interface keeps its MAC');
  await deleteEverything(plane);
  return { seen, isCut };
}

async function askAndSettle(plane: VmPlane, ask: Step['ask']): Promise<'done'> {
  const run = async (): Promise<'done'> => {
    await ask(plane);
    await plane.settle();
    return 'done';
  };
  const running = run();
  // After the kill it hangs or fails, as expected.
  running.catch(() => {});
  return await running;
}

interface Work {
  /** The first crash point. */
  readonly from: number;
  /** Kills the agents together with the server. */
  readonly agents: boolean;
}

async function runAllCrashPoints({ from, agents }: Work): Promise<number> {
  const plane = new VmPlane({});
  await plane.start();
  const undisturbed = await runSequence(plane, { after: Infinity, agents });
  const { places } = undisturbed.seen['a volume is added']!;
  assert.deepEqual(Object.keys(places).sort(), ['disk-data', 'disk-log', 'disk-root', 'nic-a']);
  let points = 0;
  for (let after = from, isCut = true; isCut; after += STEP) {
    assert.ok(after < MOST_WRITES, 'the sequence ends');
    try {
      const run = await runSequence(plane, { after, agents });
      assert.deepEqual(run.seen, undisturbed.seen);
      isCut = run.isCut;
    } catch (error) {
      throw new Error(`killed after write ${after}: ${(error as Error).message}`, { cause: error });
    }
    if (isCut) points++;
  }
  await plane.stop();
  return points;
}

const cases: Readonly<Record<string, Work>> = {
  alone: { from: 0, agents: false },
  'with all agents': { from: 1, agents: true },
};

/** Runs in a thread, without the test runner's hooks on each promise, which take half of the time. */
async function inThread(work: Work): Promise<number> {
  const worker = new Worker(new URL(import.meta.url), { workerData: work });
  try {
    return await new Promise<number>((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
      worker.once('exit', (code) => reject(new Error(`the thread ended with code ${code}`)));
    });
  } finally {
    await worker.terminate();
  }
}

if (isMainThread) {
  describe('hotplugs complete wherever the server is killed', { concurrency: 2 }, () => {
    for (const [name, work] of Object.entries(cases)) {
      it(name, async (t) => {
        const points = await inThread(work);
        t.diagnostic(`${points} points`);
        assert.ok(points >= LEAST_POINTS, `only ${points} points`);
      });
    }
  });
} else parentPort?.postMessage(await runAllCrashPoints(workerData));
