/**
 * VMs on the whole API with only the controllers of VMs and of identity records. The test acts as all other components:
 * it runs, reports and removes instances. Requests are those that the subresources would write (api/verbs/).
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { decideVerb } from '#api/verbs/decide-verb.ts';
import { legacyUuid } from '#api/identity/legacy-uuid.ts';
import { VM_FINALIZER, VMI_FINALIZER } from '#api/names.ts';
import type { RunStrategy } from '#api/virtual-machine/schema.ts';
import { VIRTUAL_MACHINE_IDENTITIES as RECORD_TYPE } from '#api/virtual-machine-identity/kind.ts';
import { createInProcessTransport } from '#client/in-process.ts';
import { createClient } from '#client/rest-client.ts';
import { FakeClock, settle } from '#lib/testing/fake-clock.ts';
import { vmController } from '#controllers/vm/vm-controller.ts';
import type { ApiHandler, ApiRequest } from '#engine/request/request.ts';
import { forbidden } from '#kube/api-error.ts';
import { timestamp } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import { definitions } from '#operator/objects/definitions.ts';
import { EventRecorder } from '#runtime/events.ts';
import { MetricRegistry } from '#lib/metrics/metric-registry.ts';
import { SharedInformers } from '#runtime/shared-informers.ts';
import { ADMIN, startTestApi, type Loose, type TestApi } from '#test/support/test-api.ts';
import { staticDeviceMap, deviceStatusOf } from '#test/support/static-devices.ts';
import type { SubresourceVerb, VerbOptions } from '#api/verbs/verb.ts';

const VMS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const VMIS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';
const RECORDS = '/apis/identity.selfsame.io/v1/namespaces/default/virtualmachineidentities';
const SNAPSHOTS = '/apis/snapshot.kubevirt.io/v1beta1/namespaces/default';
const JSON_PATCH = 'application/json-patch+json';
const DEVICES = [
  { id: 'disk-root', type: 'disk', device: 'disk', name: 'root', address: { type: 'pci', bus: '0x01' }, managed: true },
];

/** Called for each request of the controllers; throws to simulate the end of their process. */
type Gate = (request: ApiRequest) => void;

class Scene {
  readonly clock = new FakeClock();
  readonly #api: TestApi;
  #own: Awaited<ReturnType<typeof startControllers>> | undefined;
  /** The name of every instance that existed, by uid. */
  readonly #seen = new Map<string, string>();
  /** VMs whose instances fail before they run. */
  readonly broken = new Set<string>();

  private constructor(api: TestApi, clock: FakeClock) {
    this.#api = api;
    this.clock = clock;
  }

  static async start(t: TestContext, gate?: Gate): Promise<Scene> {
    const clock = new FakeClock();
    const api = await startTestApi({ clock });
    for (const { object } of definitions) {
      await api.ok('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', { body: object });
    }
    await api.settle();
    const scene = new Scene(api, clock);
    scene.#own = await startControllers(api, clock, gate);
    t.after(async () => {
      await scene.#own?.stop();
      await api.stop();
    });
    return scene;
  }

  /** Stops the controllers and starts new ones. */
  async restart(): Promise<void> {
    await this.#own?.stop();
    this.#own = await startControllers(this.#api, this.clock);
    await this.settle();
  }

  ok(method: string, url: string, body?: Loose): Promise<Loose> {
    const contentType = Array.isArray(body) ? JSON_PATCH : undefined;
    return this.#api.ok(method, url, { body, ...(contentType === undefined ? {} : { contentType }) });
  }

  /** Returns undefined if there is no such object. */
  async find(url: string): Promise<Loose> {
    const { status, body } = await this.#api.call('GET', url);
    return status === 404 ? undefined : body;
  }

  /** Waits until neither the controllers nor the components that the test acts as have anything to do. */
  async settle(): Promise<void> {
    for (let round = 0, quiet = 0; quiet < 2; round++) {
      assert.ok(round < 300, 'the controllers do not settle');
      const before = this.#api.store.revision;
      await settle();
      await this.#api.settle();
      await this.#own?.idle();
      await this.#actAsOthers();
      quiet = this.#api.store.revision === before ? quiet + 1 : 0;
    }
  }

  async advance(seconds: number): Promise<void> {
    await this.clock.advance(seconds * 1000);
    await this.settle();
  }

  async #actAsOthers(): Promise<void> {
    const { items } = await this.ok('GET', VMIS);
    for (const { metadata, status } of items) {
      const { name, uid, finalizers, deletionTimestamp } = metadata;
      this.#seen.set(uid, name);
      if (deletionTimestamp !== undefined && finalizers.includes(VMI_FINALIZER)) {
        const left = finalizers.filter((finalizer: string) => finalizer !== VMI_FINALIZER);
        await this.ok('PATCH', `${VMIS}/${name}`, { metadata: { finalizers: left } });
      } else if (deletionTimestamp === undefined && status?.phase === undefined) {
        await this.report(name, this.broken.has(name) ? 'Failed' : 'Running');
      }
    }
  }

  async report(name: string, phase: string): Promise<void> {
    const { status = {} } = await this.ok('GET', `${VMIS}/${name}`);
    const { phaseTransitionTimestamps = [] } = status;
    const transition = { phase, phaseTransitionTimestamp: timestamp(this.clock.now()) };
    const ready = { type: 'Ready', status: phase === 'Running' ? 'True' : 'False' };
    const body = {
      phase,
      phaseTransitionTimestamps: [...phaseTransitionTimestamps, transition],
      conditions: [ready],
      ...(phase === 'Running' ? deviceStatusOf(DEVICES) : {}),
    };
    await this.ok('PATCH', `${VMIS}/${name}/status`, { status: body });
  }

  /** Requests what the subresource would write; returns the refusal, if any. */
  async ask(verb: SubresourceVerb, name: string, options?: VerbOptions): Promise<string> {
    const [vm, vmi] = [await this.find(`${VMS}/${name}`), await this.find(`${VMIS}/${name}`)];
    const answer = decideVerb(verb, { name, vm, vmi, options });
    if ('denied' in answer) return `${answer.denied.code} ${answer.denied.message}`;
    for (const step of answer.allowed) {
      if (step.do === 'patchVm') await this.ok('PATCH', `${VMS}/${name}`, step.patch);
      if (step.do === 'patchVmStatus') await this.ok('PATCH', `${VMS}/${name}/status`, step.patch);
      if (step.do === 'patchVmi') await this.ok('PATCH', `${VMIS}/${name}`, step.patch);
    }
    await this.settle();
    return '';
  }

  async create(name: string, runStrategy: RunStrategy, more: Loose = {}): Promise<Loose> {
    const { spec = {}, template = { domain: {} } } = more;
    const vm = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', metadata: { name } };
    const made = await this.ok('POST', VMS, { ...vm, spec: { runStrategy, template: { spec: template }, ...spec } });
    await this.settle();
    return made;
  }

  vm(name: string): Promise<Loose> {
    return this.ok('GET', `${VMS}/${name}`);
  }

  vmi(name: string): Promise<Loose> {
    return this.ok('GET', `${VMIS}/${name}`);
  }

  instances(name: string): number {
    return [...this.#seen.values()].filter((seen) => seen === name).length;
  }

  /** Returns status, number of instances, run strategy and queued requests: `Running 2 Always`. */
  async describeVm(name: string): Promise<string> {
    const { spec, status } = await this.vm(name);
    const queued = (status.stateChangeRequests ?? []).map(({ action }: Loose) => ` +${action}`).join('');
    return `${status.printableStatus} ${this.instances(name)} ${spec.runStrategy}${queued}`;
  }

  async events(about: string): Promise<string[]> {
    const { items } = await this.ok('GET', '/api/v1/namespaces/default/events');
    return items
      .filter(({ involvedObject }: Loose) => involvedObject.name === about)
      .sort((a: Loose, b: Loose) => a.metadata.resourceVersion - b.metadata.resourceVersion)
      .map(({ reason, message }: Loose) => `${reason} ${message}`);
  }
}

async function startControllers({ core }: TestApi, clock: FakeClock, gate: Gate = () => {}) {
  const stopping = new AbortController();
  const { signal } = stopping;
  const log = silentLog;
  const handler: ApiHandler = (request) => {
    gate(request);
    return core.handler(request);
  };
  const client = createClient(createInProcessTransport({ handler, user: ADMIN, userAgent: 'test' }));
  const informers = new SharedInformers({ reader: client, clock, log, signal });
  const events = new EventRecorder({ writer: client, clock, log, component: 'test', signal });
  const metrics = new MetricRegistry();
  const parts = { client, informer: informers.of.bind(informers), clock, log, events, metrics, signal };
  const running = [vmController, staticDeviceMap(DEVICES)].flatMap((controller) => controller.start(parts));
  await informers.waitForSync();
  return {
    async idle() {
      for (const controller of running) await controller.idle();
      await events.idle();
    },
    async stop() {
      stopping.abort();
      await Promise.all([...running.map(({ stopped }) => stopped), informers.stopped()]);
    },
  };
}

type VmEvent = 'shuts down' | 'crashes' | 'is deleted' | 'start' | 'paused start' | 'stop' | 'restart';

async function trigger(scene: Scene, name: string, what: VmEvent): Promise<string> {
  if (what === 'start' || what === 'stop' || what === 'restart') return scene.ask(what, name);
  if (what === 'paused start') return scene.ask('start', name, { paused: true });
  if (what === 'is deleted') await scene.ok('DELETE', `${VMIS}/${name}`);
  else await scene.report(name, what === 'crashes' ? 'Failed' : 'Succeeded');
  await scene.settle();
  return '';
}

const RUNS = '409 VM is already running';
const OFF = '409 VM is not running';
const NO_RESTART = (strategy: string) => `409 RunStategy ${strategy} does not support manual restart requests`;
const NO_START = (strategy: string) => `409 ${strategy} does not support manual start requests`;

// What happens after the first instance runs (Halted: after creation), and the VM afterwards.
const strategies: Record<RunStrategy, [VmEvent[], string][]> = {
  Always: [
    [[], 'Running 1 Always'],
    [['shuts down'], 'Running 2 Always'],
    [['crashes'], 'Running 2 Always'],
    [['is deleted'], 'Running 2 Always'],
    [['start'], RUNS],
    [['stop'], 'Stopped 1 Halted'],
    [['stop', 'start'], 'Running 2 Always'],
    [['restart'], 'Running 2 Always'],
    [['restart', 'restart'], 'Running 3 Always'],
  ],
  Halted: [
    [[], 'Stopped 0 Halted'],
    [['start'], 'Running 1 Always'],
    [['paused start'], 'Running 1 Always'],
    [['stop'], OFF],
    [['restart'], NO_RESTART('Halted')],
  ],
  Manual: [
    [[], 'Running 1 Manual'],
    [['shuts down'], 'Stopped 1 Manual'],
    [['crashes'], 'Stopped 1 Manual'],
    [['is deleted'], 'Stopped 1 Manual'],
    [['start'], RUNS],
    [['stop'], 'Stopped 1 Manual'],
    [['stop', 'start'], 'Running 2 Manual'],
    [['stop', 'restart'], '409 VM is not running: Halted'],
    [['shuts down', 'start'], 'Running 2 Manual'],
    [['crashes', 'start'], 'Running 2 Manual'],
    [['shuts down', 'restart'], 'Running 2 Manual'],
    [['restart'], 'Running 2 Manual'],
  ],
  RerunOnFailure: [
    [[], 'Running 1 RerunOnFailure'],
    [['shuts down'], 'Stopped 1 RerunOnFailure'],
    [['crashes'], 'Running 2 RerunOnFailure'],
    [['crashes', 'crashes'], 'Running 3 RerunOnFailure'],
    [['is deleted'], 'Stopped 1 RerunOnFailure'],
    [['start'], RUNS],
    [['stop'], 'Stopped 1 RerunOnFailure'],
    [['stop', 'start'], 'Running 2 RerunOnFailure'],
    [['shuts down', 'start'], 'Running 2 RerunOnFailure'],
    [['restart'], 'Running 2 RerunOnFailure'],
  ],
  Once: [
    [[], 'Running 1 Once'],
    [['shuts down'], 'Stopped 1 Once'],
    [['crashes'], 'Stopped 1 Once'],
    [['is deleted'], 'Running 2 Once'],
    [['start'], RUNS],
    [['shuts down', 'start'], NO_START('Once')],
    [['stop'], 'Stopped 1 Halted'],
    [['restart'], NO_RESTART('Once')],
  ],
};

for (const [strategy, cells] of Object.entries(strategies) as [RunStrategy, [VmEvent[], string][]][]) {
  test(`${strategy}: a VM reacts to verbs and guest events`, async (t) => {
    const scene = await Scene.start(t);
    for (const [index, [events, want]] of cells.entries()) {
      const name = `vm-${index}`;
      await scene.create(name, strategy);
      if (strategy === 'Manual') {
        assert.equal(await scene.describeVm(name), 'Stopped 0 Manual');
        await scene.ask('start', name);
      }
      let refusal = '';
      for (const event of events) refusal = await trigger(scene, name, event);
      assert.equal(refusal || (await scene.describeVm(name)), want, events.join(', then '));
    }
  });
}

test('running: true and false are Always and Halted', async (t) => {
  const scene = await Scene.start(t);
  const running = (is: boolean) => ({ spec: { running: is, runStrategy: undefined } });
  await scene.create('on', 'Always', running(true));
  await scene.create('off', 'Halted', running(false));
  assert.deepEqual([scene.instances('on'), scene.instances('off')], [1, 0]);
  await scene.ask('stop', 'on');
  await scene.ask('start', 'off', { paused: true });
  assert.deepEqual([(await scene.vm('on')).spec.running, (await scene.vm('off')).spec.running], [false, true]);
  assert.equal(await scene.find(`${VMIS}/on`), undefined);
  assert.equal((await scene.vmi('off')).spec.startStrategy, 'Paused');
});

test('the first start records the identity, and every later start uses it', async (t) => {
  const scene = await Scene.start(t);
  const disks = [{ name: 'root', disk: { bus: 'virtio' } }];
  await scene.create('db', 'Always', { template: { domain: { devices: { disks } } } });
  const { metadata, spec } = await scene.vm('db');
  assert.deepEqual(metadata.finalizers, [VM_FINALIZER]);
  assert.equal(spec.template.spec.domain.machine.type, 'q35');
  const record = await scene.ok('GET', `${RECORDS}/db`);
  assert.deepEqual(record.status.devices, DEVICES);
  assert.equal(record.status.machine.type, 'pc-q35-7.2');
  const machineOf = ({ domain }: Loose) => [domain.firmware, domain.devices.interfaces];
  const first = await scene.vmi('db');
  assert.deepEqual(first.spec.domain.firmware, record.spec.firmware);
  assert.equal(first.spec.domain.devices.interfaces[0].macAddress, record.spec.interfaces[0].macAddress);

  await scene.ask('restart', 'db');
  const second = await scene.vmi('db');
  assert.notEqual(second.metadata.uid, first.metadata.uid);
  assert.deepEqual(machineOf(second.spec), machineOf(first.spec));
  const { status } = await scene.ok('GET', `${RECORDS}/db`);
  assert.equal(status.instance, second.metadata.uid);
  assert.equal(status.history.length, 3, 'the legacy uuid, the rest of the identity, and the first reading');
  const uuid = record.spec.firmware.uuid;
  const started = 'SuccessfulCreate Started the virtual machine by creating the new virtual machine instance db';
  assert.equal(spec.template.spec.domain.firmware.uuid, uuid);
  assert.deepEqual(await scene.events('db'), [
    `FirmwareUUIDPersisted Persisted the firmware uuid ${uuid}, which follows from its name as in older versions`,
    `IdentityRecorded Recorded the identity of the virtual machine with firmware uuid ${uuid}`,
    `SuccessfulDelete Stopped the virtual machine by deleting the virtual machine instance ${first.metadata.uid}`,
    // Recorded twice and counted; its position is that of the last time.
    started,
  ]);
});

test('a change requires a restart until it is reverted or the VM is restarted', async (t) => {
  const scene = await Scene.start(t);
  await scene.create('db', 'Always');
  const cores = async (count: number | null) => {
    await scene.ok('PATCH', `${VMS}/db`, { spec: { template: { spec: { domain: { cpu: { cores: count } } } } } });
    await scene.settle();
  };
  const waits = async () => {
    const { conditions, observedGeneration, desiredGeneration } = (await scene.vm('db')).status;
    const waiting = conditions.find(({ type }: Loose) => type === 'RestartRequired');
    assert.equal(waiting === undefined, observedGeneration === desiredGeneration);
    return waiting?.message;
  };
  assert.equal(await waits(), undefined);
  await cores(2);
  assert.equal(await waits(), 'a non-live-updatable field was changed in the template spec');
  await scene.ask('restart', 'db');
  assert.equal(await waits(), undefined);
  assert.equal((await scene.vmi('db')).spec.domain.cpu.cores, 2);
  await cores(4);
  assert.ok(await waits());
  await cores(2);
  assert.equal(await waits(), undefined);
});

test('a VM that fails to start is tried again with growing delays until it runs', async (t) => {
  const scene = await Scene.start(t);
  scene.broken.add('db');
  await scene.create('db', 'Always');
  const failures = async () => (await scene.vm('db')).status.startFailure?.consecutiveFailCount;
  assert.equal(await scene.describeVm('db'), 'CrashLoopBackOff 1 Always');
  assert.equal(await failures(), 1);
  await scene.advance(9);
  assert.equal(scene.instances('db'), 1);
  await scene.advance(7);
  assert.deepEqual([scene.instances('db'), await failures()], [2, 2]);
  await scene.advance(39);
  assert.equal(scene.instances('db'), 2);
  scene.broken.clear();
  await scene.advance(22);
  assert.equal(await scene.describeVm('db'), 'Running 3 Always');
  assert.equal(await failures(), undefined);
});

test('a refused create of the instance is reported until it succeeds', async (t) => {
  let refuses = true;
  const scene = await Scene.start(t, ({ method, path }) => {
    if (refuses && method === 'POST' && path === VMIS) throw new Error('not today');
  });
  await scene.create('db', 'Always');
  const failure = async () =>
    (await scene.vm('db')).status.conditions.find(({ type }: Loose) => type === 'Failure')?.message;
  assert.match(await failure(), /^Failure while starting VMI: .*not today/);
  assert.equal(await scene.describeVm('db'), 'Starting 0 Always');
  refuses = false;
  await scene.advance(60);
  assert.equal(await scene.describeVm('db'), 'Running 1 Always');
  assert.equal(await failure(), undefined);
});

test('U7: a refused write of the firmware uuid is reported, and nothing starts until it succeeds', async (t) => {
  let refuses = true;
  const scene = await Scene.start(t, ({ method, path }) => {
    if (refuses && method === 'PATCH' && path.startsWith(VMS)) throw new Error('not today');
  });
  for (const [name, strategy] of Object.entries({ db: 'Always', web: 'Halted' } as const)) {
    refuses = true;
    await scene.create(name, strategy);
    const failure = async () => (await scene.vm(name)).status.conditions.find(({ type }: Loose) => type === 'Failure');
    const { reason, message } = await failure();
    assert.equal(reason, 'FirmwareUUIDError');
    assert.match(message, /^Failure while persisting the firmware uuid: .*not today/);
    assert.equal(await scene.find(`${VMIS}/${name}`), undefined);
    assert.equal((await scene.vm(name)).spec.template.spec.domain.firmware, undefined);
    refuses = false;
    await scene.advance(60);
    assert.equal(await failure(), undefined);
    assert.equal((await scene.vm(name)).spec.template.spec.domain.firmware.uuid, legacyUuid(name));
  }
  assert.equal(await scene.describeVm('db'), 'Running 1 Always');
});

test('a VM starts when the last snapshot or restore no longer holds it', async (t) => {
  const scene = await Scene.start(t);
  const make = (plural: string, kind: string, name: string, spec: Loose) => {
    const body = { apiVersion: 'snapshot.kubevirt.io/v1beta1', kind, metadata: { name }, spec };
    return scene.ok('POST', `${SNAPSHOTS}/${plural}`, body);
  };
  const vm = { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'db' };
  const restore = { target: vm, virtualMachineSnapshotName: 's' };
  await make('virtualmachinesnapshots', 'VirtualMachineSnapshot', 's', { source: vm });
  await scene.advance(1);
  await make('virtualmachinerestores', 'VirtualMachineRestore', 'r', restore);
  // Its own controller writes this when the snapshot is complete.
  await scene.ok('PATCH', `${SNAPSHOTS}/virtualmachinerestores/r/status`, { status: { restores: [] } });
  const held = async () => {
    const { snapshotInProgress = '-', restoreInProgress = '-' } = (await scene.vm('db')).status;
    return `${snapshotInProgress} ${restoreInProgress} ${await scene.describeVm('db')}`;
  };
  await scene.create('db', 'Always');
  assert.equal(await held(), 's - Stopped 0 Always');
  await scene.ok('PATCH', `${SNAPSHOTS}/virtualmachinesnapshots/s/status`, { status: { phase: 'Succeeded' } });
  await scene.settle();
  assert.equal(await held(), '- r Stopped 0 Always');
  await scene.ok('DELETE', `${SNAPSHOTS}/virtualmachinerestores/r`);
  await scene.settle();
  assert.equal(await held(), '- - Running 1 Always');
});

test('an instance of another owner is not changed, and the VM reports it', async (t) => {
  const scene = await Scene.start(t);
  const vmi = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', spec: { domain: {} } };
  const { metadata } = await scene.ok('POST', VMIS, { ...vmi, metadata: { name: 'db' } });
  await scene.create('db', 'Always');
  const { status } = await scene.vm('db');
  assert.match(status.conditions.find(({ type }: Loose) => type === 'Failure').message, /does not belong to this VM/);
  assert.equal((await scene.vmi('db')).metadata.uid, metadata.uid);
  await scene.ok('DELETE', `${VMIS}/db`);
  await scene.settle();
  assert.equal(await scene.describeVm('db'), 'Running 2 Always');
});

const deletions: Record<string, { policy: string; instance: boolean }> = {
  'a delete of a VM deletes its instance and its record': { policy: 'Background', instance: false },
  'a foreground delete of a VM deletes its instance and its record': { policy: 'Foreground', instance: false },
  'an orphaned instance is kept, and can be deleted later': { policy: 'Orphan', instance: true },
};

for (const [name, { policy, instance }] of Object.entries(deletions)) {
  test(name, async (t) => {
    const scene = await Scene.start(t);
    await scene.create('db', 'Always');
    const { uid } = (await scene.vmi('db')).metadata;
    const options = { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: policy };
    await scene.ok('DELETE', `${VMS}/db`, options);
    await scene.settle();
    // The garbage collector checks objects with finalizers again after a while.
    await scene.advance(30);
    assert.equal(await scene.find(`${VMS}/db`), undefined);
    const left = [await scene.find(`${VMIS}/db`), await scene.find(`${RECORDS}/db`)];
    assert.deepEqual([left[0]?.metadata.uid, left[1] !== undefined], instance ? [uid, true] : [undefined, false]);
    if (!instance) return;
    assert.equal(left[0].status.phase, 'Running');
    await scene.ok('DELETE', `${VMIS}/db`);
    await scene.settle();
    assert.equal(await scene.find(`${VMIS}/db`), undefined);
  });
}

interface KillCase {
  readonly strategy: RunStrategy;
  /** Happens to a running VM; undefined: only the start is tested. */
  readonly event?: VmEvent;
  readonly want: string;
}

const killCases: Record<string, KillCase> = {
  'a start': { strategy: 'Always', want: 'Running 1 Always' },
  'a first start under RerunOnFailure': { strategy: 'RerunOnFailure', want: 'Running 1 RerunOnFailure' },
  'a restart': { strategy: 'Manual', event: 'restart', want: 'Running 2 Manual' },
  'a crash under RerunOnFailure': {
    strategy: 'RerunOnFailure',
    event: 'crashes',
    want: 'Running 2 RerunOnFailure',
  },
  'a paused start of a halted VM': { strategy: 'Halted', event: 'paused start', want: 'Running 1 Always' },
  'a stop': { strategy: 'Always', event: 'stop', want: 'Stopped 1 Halted' },
};

const isWrite = ({ method, path }: ApiRequest) => method !== 'GET' && !path.includes('/events');
/** Time for retries of requests that failed. */
const RETRY_SECONDS = 5;

for (const [name, { strategy, event, want }] of Object.entries(killCases)) {
  test(`a controller that is killed after any write is replaced by one that completes: ${name}`, async (t) => {
    const run = async (left: number): Promise<{ scene: Scene; writes: number }> => {
      let writes = 0;
      let counts = event === undefined;
      const scene = await Scene.start(t, (request) => {
        if (!counts || !isWrite(request)) return;
        if (writes >= left) throw new Error('the process was killed');
        writes++;
      });
      await scene.create('db', strategy);
      if (strategy === 'Manual') await scene.ask('start', 'db');
      counts = true;
      if (event !== undefined) await trigger(scene, 'db', event);
      return { scene, writes };
    };
    const { scene, writes } = await run(Infinity);
    assert.equal(await scene.describeVm('db'), want);
    assert.ok(writes >= 3, `${writes} writes to cut after`);
    const record = (await scene.find(`${RECORDS}/db`))?.spec;

    for (let cut = 0; cut < writes; cut++) {
      const { scene: again } = await run(cut);
      await again.restart();
      await again.advance(RETRY_SECONDS);
      assert.equal(await again.describeVm('db'), want, `cut after write ${cut}`);
      assert.equal((await again.find(`${RECORDS}/db`))?.spec.firmware.uuid, record?.firmware.uuid);
    }
  });
}

test('a VM that is created again adopts the orphaned instance', async (t) => {
  const scene = await Scene.start(t);
  await scene.create('db', 'Always');
  const before = (await scene.vmi('db')).metadata.uid;
  const options = { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: 'Orphan' };
  await scene.ok('DELETE', `${VMS}/db`, options);
  await scene.settle();
  await scene.advance(30);
  const { metadata } = await scene.create('db', 'Always');
  const { uid, ownerReferences } = (await scene.vmi('db')).metadata;
  assert.deepEqual([uid, ownerReferences.map((owner: Loose) => owner.uid)], [before, [metadata.uid]]);
  assert.equal(await scene.describeVm('db'), 'Running 1 Always');
  await scene.advance(60);
  assert.equal((await scene.vmi('db')).metadata.uid, before);
});

test('a new default machine type requires a restart only of VMs without their own type', async (t) => {
  const scene = await Scene.start(t);
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'selfsame-system' } };
  await scene.ok('POST', '/api/v1/namespaces', namespace);
  const restarts = async (name: string) =>
    (await scene.vm(name)).status.conditions.some(({ type }: Loose) => type === 'RestartRequired');
  await scene.create('typed', 'Always');
  await scene.create('cleared', 'Always');
  await scene.ok('PATCH', `${VMS}/cleared`, { spec: { template: { spec: { domain: { machine: null } } } } });
  await scene.settle();
  assert.deepEqual([await restarts('typed'), await restarts('cleared')], [false, false]);

  await scene.ok('POST', '/apis/kubevirt.io/v1/namespaces/selfsame-system/kubevirts', {
    apiVersion: 'kubevirt.io/v1',
    kind: 'KubeVirt',
    metadata: { name: 'kubevirt' },
    spec: { configuration: { machineType: 'pc-q35-7.2' } },
  });
  await scene.settle();
  assert.deepEqual([await restarts('typed'), await restarts('cleared')], [false, true]);
});

test('a start that cannot be prepared is reported in the status', async (t) => {
  const scene = await Scene.start(t, ({ method, path }) => {
    if (method === 'POST' && path.endsWith('/virtualmachineidentities')) throw forbidden(RECORD_TYPE, 'db', 'no quota');
  });
  await scene.create('db', 'Always');
  const { conditions } = (await scene.vm('db')).status;
  const failure = conditions.find(({ type }: Loose) => type === 'Failure');
  assert.match(failure.message, /^Failure while starting VMI: .*no quota/);
});
