/**
 * The server is lost after each write of a story in which devices come and go while the guest runs: alone, or, after
 * every second one, with all agents. The next one takes over, and each step of the story ends as it does undisturbed:
 * the guest has what the template says, each device at its address, the record says the same, nothing is left waiting,
 * and no claim is held for a guest that does not have it. The guest runs through all of it.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import type { Device } from '#node/definition/domain-definition.ts';
import { FULL_RUN } from '#test/support/full-run.ts';
import { removeEverything } from '#test/support/snapshots.ts';
import type { Loose } from '#test/support/test-api.ts';
import { aClaim, aVm, VmPlane } from '#test/support/vm-plane.ts';

const SUBRESOURCES = '/apis/subresources.kubevirt.io/v1/namespaces/default';
const HOTPLUGGED = 'selfsame.io/hotplugged';
/** From one point to the next; two runs begin at different ones. */
const STEP = FULL_RUN ? 2 : 6;
/** Fewer would mean that the story does not do what it tells of. */
const LEAST_POINTS = FULL_RUN ? 20 : 7;
/** More than it has: past it, something writes for ever. */
const MOST_WRITES = 120;

interface Step {
  ask(plane: VmPlane): Promise<unknown>;
  /** Whether it was taken: who got no answer looks before asking again. */
  isAsked(template: Loose): boolean;
}

const story: Readonly<Record<string, Step>> = {
  'a volume is added': {
    ask: (plane) =>
      verb(plane, 'addvolume', {
        name: 'data',
        disk: { disk: { bus: 'scsi' }, serial: 'DATA' },
        volumeSource: { persistentVolumeClaim: { claimName: 'data', hotpluggable: true } },
      }),
    isAsked: hasVolume,
  },
  'it is removed': {
    ask: (plane) => verb(plane, 'removevolume', { name: 'data' }),
    isAsked: (template) => !hasVolume(template),
  },
  'an interface is added': {
    ask: (plane) => plane.put(withInterfaces({ name: 'a' }, { name: 'b' })),
    isAsked: (template) => stateOf(template, 'b') === 'up',
  },
  'it is absent': {
    ask: (plane) => plane.put(withInterfaces({ name: 'a' }, { name: 'b', state: 'absent' })),
    isAsked: (template) => stateOf(template, 'b') === 'absent',
  },
  'it is back': {
    ask: (plane) => plane.put(withInterfaces({ name: 'a' }, { name: 'b' })),
    isAsked: (template) => stateOf(template, 'b') === 'up',
  },
};

async function verb(plane: VmPlane, name: string, body: Loose): Promise<void> {
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

/** Who runs, before anything is asked for. */
interface Before {
  readonly instance: string;
  readonly starts: number;
}

async function prepare(plane: VmPlane): Promise<Before> {
  // Its volume is made when somebody uses it, on that node.
  await plane.put(aClaim('data', { storageClassName: 'local' }));
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

const comesAndGoes = ({ type }: Device) => type === 'disk' || type === 'interface';

/** Where the guest has each disk and interface. */
function placesOf(plane: VmPlane): Record<string, Loose> {
  const devices = plane.guest('db').definition.devices.filter(comesAndGoes);
  return Object.fromEntries(devices.map(({ id, address }) => [id, address]));
}

function wantedBy({ domain }: Loose): string[] {
  const { disks = [], interfaces = [] } = domain.devices;
  const up = interfaces.filter(({ state }: Loose) => state !== 'absent');
  return [...disks.map(({ name }: Loose) => `disk-${name}`), ...up.map(({ name }: Loose) => `nic-${name}`)];
}

/** All that must hold at the end of each step; what must be equal in every run comes back. */
async function look(plane: VmPlane, { instance, starts }: Before): Promise<Loose> {
  const template = (await plane.get('VirtualMachine', 'db')).spec.template.spec;
  const places = placesOf(plane);
  assert.deepEqual(Object.keys(places).sort(), wantedBy(template).sort(), 'the guest has what the template says');
  assert.equal(plane.starts.length, starts, 'nobody started it again');

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
  const rows: Loose[] = record.devices.filter(comesAndGoes);
  const plugged = rows.filter((row) => row.plugged !== false);
  assert.deepEqual(Object.fromEntries(plugged.map(({ id, address }) => [id, address])), places, 'the record');

  const { finalizers = [] } = (await plane.get('PersistentVolumeClaim', 'data')).metadata;
  assert.equal(finalizers.includes(HOTPLUGGED), 'disk-data' in places, 'the claim is held as long as the guest has it');
  const absent = rows.filter((row) => row.plugged === false).map(({ id, address }) => [id, address]);
  return { places, absent };
}

/**
 * What must hold at any moment, also at the one of the crash: what the guest is to have or to lose is on record before
 * its instance is told.
 */
async function lookAtRecord(plane: VmPlane): Promise<void> {
  const { spec } = await plane.get('VirtualMachineInstance', 'db');
  const record = await plane.get('VirtualMachineIdentity', 'db');
  const template = (await plane.get('VirtualMachine', 'db')).spec.template.spec;
  for (const { name, macAddress, state } of spec.domain.devices.interfaces) {
    const recorded = record.spec.interfaces.find((nic: Loose) => nic.name === name);
    assert.equal(macAddress, recorded?.macAddress, `the MAC of ${name} is on record`);
    const row = record.status.devices.find(({ id }: Loose) => id === `nic-${name}`);
    // Where it is to come back, the record has it first, too.
    const goes = state === 'absent' && stateOf(template, name) === 'absent';
    if (goes) assert.equal(row?.plugged, false, `that ${name} goes is on record`);
  }
}

function macOf(plane: VmPlane, id: string): string | undefined {
  const device = plane.guest('db').definition.devices.find((one) => one.id === id);
  return device?.type === 'interface' ? device.macAddress : undefined;
}

interface Run {
  /** What each step led to. */
  readonly seen: Record<string, Loose>;
  readonly isCut: boolean;
}

/** Tells the story on a plane that has nothing on it; `after`: the server is lost after so many writes. */
async function tell(plane: VmPlane, { after, agents }: { after: number; agents: boolean }): Promise<Run> {
  const before = await prepare(plane);
  const seen: Record<string, Loose> = {};
  const macs = new Set<string>();
  let isCut = false;
  const cut = plane.cutAfter(after);
  for (const [name, { ask, isAsked }] of Object.entries(story)) {
    const running = askAndSettle(plane, ask);
    if ((await Promise.race([running, ...(isCut ? [] : [cut])])) === 'cut') {
      isCut = true;
      await lookAtRecord(plane);
      await plane.restartServer({ agents });
      const { spec } = await plane.get('VirtualMachine', 'db');
      if (!isAsked(spec.template.spec)) await ask(plane);
      await plane.settle();
    }
    try {
      seen[name] = await look(plane, before);
      await lookAtRecord(plane);
    } catch (error) {
      throw new Error(`${name}: ${(error as Error).message}`, { cause: error });
    }
    const mac = macOf(plane, 'nic-b');
    if (mac !== undefined) macs.add(mac);
  }
  if (!isCut) void plane.cutAfter(Infinity);
  assert.equal(macs.size, 1, 'the interface comes back with its MAC');
  await removeEverything(plane);
  return { seen, isCut };
}

async function askAndSettle(plane: VmPlane, ask: Step['ask']): Promise<'done'> {
  const run = async (): Promise<'done'> => {
    await ask(plane);
    await plane.settle();
    return 'done';
  };
  const running = run();
  // After the cut it hangs or fails, as it must.
  running.catch(() => {});
  return await running;
}

interface Work {
  /** The first point; the next one is STEP further. */
  readonly from: number;
  /** Whether the agents are lost with the server. */
  readonly agents: boolean;
}

async function throughEveryCrash({ from, agents }: Work): Promise<number> {
  const plane = new VmPlane({});
  await plane.start();
  const undisturbed = await tell(plane, { after: Infinity, agents });
  const { places } = undisturbed.seen['a volume is added']!;
  assert.deepEqual(Object.keys(places).sort(), ['disk-data', 'disk-log', 'disk-root', 'nic-a']);
  let points = 0;
  for (let after = from, isCut = true; isCut; after += STEP) {
    assert.ok(after < MOST_WRITES, 'it comes to its end');
    try {
      const run = await tell(plane, { after, agents });
      assert.deepEqual(run.seen, undisturbed.seen);
      isCut = run.isCut;
    } catch (error) {
      throw new Error(`lost after write ${after}: ${(error as Error).message}`, { cause: error });
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

/** In a thread of its own, where no test runner follows each promise: that takes half of the time. */
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
  describe('the server is lost after any write while devices come and go', { concurrency: 2 }, () => {
    for (const [name, work] of Object.entries(cases)) {
      it(name, async (t) => {
        const points = await inThread(work);
        t.diagnostic(`${points} points`);
        assert.ok(points >= LEAST_POINTS, `only ${points} points`);
      });
    }
  });
} else parentPort?.postMessage(await throughEveryCrash(workerData));
