/**
 * The functional tests of the proposal as described there, and one for each flag that was added later. They run through
 * virtctl's flags, the Job that the server stores, and the environment that its program reads.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { optionsFromEnv } from '#api/machine-types/options.ts';
import { SYSTEM_NAMESPACE } from '#api/names.ts';
import { parseArgs } from '#lib/command-line/parse-args.ts';
import { textFlag } from '#lib/command-line/flag.ts';
import { selectionFlags, transitionOptions } from '#cli/machine-types/transition-flags.ts';
import { buildTransitionJob } from '#cli/machine-types/transition-job.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import type { Loose } from '#test/support/test-api.ts';
import { TransitionScene } from '#test/support/transition-scene.ts';
import { aVm, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const OLD = 'pc-q35-rhel8.2.0';
const NEW = 'pc-q35-rhel9.2.0';
const GLOB = ['--which-matches-glob', '*rhel-8.*'];
const FLAGS = { ...selectionFlags, namespace: textFlag({ name: 'namespace', help: '' }, 'string') };

interface VmOptions {
  readonly namespace?: string;
  readonly runs: boolean;
  readonly labels?: Loose;
  readonly type?: string;
}

const urlOf = (plural: string, namespace: string) => `/apis/kubevirt.io/v1/namespaces/${namespace}/${plural}`;

class Fleet {
  readonly plane: VmPlane;
  readonly #namespaces = new Map<string, string>();

  constructor(plane: VmPlane) {
    this.plane = plane;
  }

  static async start(t: TestContext, vms: Readonly<Record<string, VmOptions>>): Promise<Fleet> {
    const fleet = new Fleet(await startVmPlane(t));
    const { api } = fleet.plane.server;
    for (const [name, { namespace = 'default', runs, labels = {}, type = OLD }] of Object.entries(vms)) {
      if (namespace !== 'default' && ![...fleet.#namespaces.values()].includes(namespace)) {
        const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } };
        await api.ok('POST', '/api/v1/namespaces', { body });
      }
      fleet.#namespaces.set(name, namespace);
      const vm = aVm(name, { runStrategy: runs ? 'Always' : 'Halted' }, { domain: { machine: { type } } });
      const body = { ...vm, metadata: { name, labels } };
      await api.ok('POST', urlOf('virtualmachines', namespace), { body });
    }
    await fleet.plane.settle();
    return fleet;
  }

  /** Creates the Job with virtctl. The Job is suspended, so that only the test runs it. */
  async update(...argv: string[]): Promise<TransitionScene> {
    const { args, flags } = parseArgs(FLAGS, argv);
    const made = buildTransitionJob(transitionOptions({ args, flags, namespace: flags.namespace }));
    const body = { ...made, spec: { ...made.spec, suspend: true } };
    const url = `/apis/batch/v1/namespaces/${SYSTEM_NAMESPACE}/jobs`;
    const { metadata, spec } = await this.plane.server.api.ok('POST', url, { body });
    const [{ env }] = spec.template.spec.containers;
    const parsed = optionsFromEnv(Object.fromEntries(env.map((variable: Loose) => [variable.name, variable.value])));
    assert.ok('options' in parsed, JSON.stringify(parsed));
    const job = { namespace: SYSTEM_NAMESPACE, name: metadata.name, uid: metadata.uid };
    return new TransitionScene(this.plane, job, parsed.options);
  }

  #get(plural: string, name: string): Promise<Loose> {
    return this.plane.server.api.ok('GET', `${urlOf(plural, this.#namespaces.get(name) ?? 'default')}/${name}`);
  }

  /** Returns `TYPE in the spec, mark` for each VM. */
  async typesAndMarks(): Promise<Record<string, string>> {
    const texts: Record<string, string> = {};
    for (const name of this.#namespaces.keys()) {
      const { spec, status } = await this.#get('virtualmachines', name);
      const mark = status.machineTypeRestartRequired;
      texts[name] = `${spec.template.spec.domain.machine?.type ?? 'none'}${mark === undefined ? '' : `, ${mark}`}`;
    }
    return texts;
  }

  async setType(name: string, type: string): Promise<void> {
    const template = { spec: { domain: { machine: { type } } } };
    await this.plane.apply({ kind: 'VirtualMachine', metadata: { name }, spec: { template } });
  }

  instance(name: string): Promise<Loose> {
    return this.#get('virtualmachineinstances', name);
  }

  starts(name: string): number {
    return this.plane.starts.filter((start) => start.name === `${this.#namespaces.get(name)}/${name}`).length;
  }
}

/**
 * Asserts that the Job waits for the restart of the marked VMs, restarts them as users do, and asserts that it ends.
 */
async function assertEndsByRestart(
  fleet: Fleet,
  scene: TransitionScene,
  marked: Record<string, string>,
): Promise<void> {
  const running = scene.start();
  await scene.advance(4);
  assert.deepEqual(await fleet.typesAndMarks(), marked);
  assert.equal(running.outcome, undefined, 'it waits for the restart');
  for (const [name, text] of Object.entries(marked)) {
    if (!text.endsWith(', true')) continue;
    const { metadata, status } = await fleet.instance(name);
    assert.equal(status.machine.type, OLD);
    const url = `/apis/subresources.kubevirt.io/v1/namespaces/${metadata.namespace}/virtualmachines/${name}/restart`;
    await fleet.plane.server.api.ok('PUT', url, { body: {} });
  }
  assert.equal(await scene.awaitEnd(running), 'done');
  await fleet.plane.settle();
  for (const [name, text] of Object.entries(marked)) {
    if (!text.endsWith(', true')) continue;
    assert.equal((await fleet.typesAndMarks())[name], 'q35, false');
    assert.equal((await fleet.instance(name)).status.machine.type, NEW);
  }
}

test('--namespace', async (t) => {
  const fleet = await Fleet.start(t, {
    'here-stopped': { namespace: 'here', runs: false },
    'here-runs': { namespace: 'here', runs: true },
    'there-stopped': { namespace: 'there', runs: false },
    'there-runs': { namespace: 'there', runs: true },
  });
  await assertEndsByRestart(fleet, await fleet.update(...GLOB, '--namespace', 'here'), {
    'here-stopped': 'none',
    'here-runs': 'none, true',
    'there-stopped': OLD,
    'there-runs': OLD,
  });
  assert.equal(fleet.starts('there-runs'), 1);
});

test('--label-selector', async (t) => {
  const labels = { tier: 'db' };
  const fleet = await Fleet.start(t, {
    'with-stopped': { runs: false, labels },
    'with-runs': { runs: true, labels },
    'without-stopped': { runs: false },
    'without-runs': { runs: true },
  });
  await assertEndsByRestart(fleet, await fleet.update(...GLOB, '--label-selector', 'tier=db'), {
    'with-stopped': 'none',
    'with-runs': 'none, true',
    'without-stopped': OLD,
    'without-runs': OLD,
  });
});

test('--restart-required, the same as --restart-now', async (t) => {
  const fleet = await Fleet.start(t, {
    stopped: { runs: false },
    runs: { runs: true },
    newer: { runs: true, type: NEW },
  });
  const { uid } = (await fleet.instance('runs')).metadata;
  assert.equal(await (await fleet.update(...GLOB, '--restart-required')).run(), 'done');
  assert.deepEqual(await fleet.typesAndMarks(), { stopped: 'none', runs: 'q35', newer: NEW });
  const { metadata, status } = await fleet.instance('runs');
  assert.notEqual(metadata.uid, uid);
  assert.equal(status.machine.type, NEW);
  assert.deepEqual([fleet.starts('runs'), fleet.starts('newer')], [2, 1]);
});

test('all three flags together', async (t) => {
  const labels = { tier: 'db' };
  const fleet = await Fleet.start(t, {
    'here-with-stopped': { namespace: 'here', runs: false, labels },
    'here-with-runs': { namespace: 'here', runs: true, labels },
    'here-without-stopped': { namespace: 'here', runs: false },
    'here-without-runs': { namespace: 'here', runs: true },
    'there-with-stopped': { namespace: 'there', runs: false, labels },
    'there-with-runs': { namespace: 'there', runs: true, labels },
  });
  const scene = await fleet.update(
    ...GLOB,
    '--namespace=here',
    '--label-selector=tier in (db,web)',
    '--restart-required',
  );
  assert.equal(await scene.run(), 'done');
  assert.deepEqual(await fleet.typesAndMarks(), {
    'here-with-stopped': 'none',
    'here-with-runs': 'q35',
    'here-without-stopped': OLD,
    'here-without-runs': OLD,
    'there-with-stopped': OLD,
    'there-with-runs': OLD,
  });
  assert.equal((await fleet.instance('here-with-runs')).status.machine.type, NEW);
  assert.deepEqual(
    ['here-with-runs', 'here-without-runs', 'there-with-runs'].map((name) => fleet.starts(name)),
    [2, 1, 1],
  );
});

test('flags that were added later, each alone', async (t) => {
  const fleet = await Fleet.start(t, { a: { runs: false }, b: { runs: true }, c: { runs: false }, d: { runs: true } });

  await t.test('--name', async () => {
    assert.equal(await (await fleet.update(...GLOB, '--name', 'a')).run(), 'done');
    assert.deepEqual(await fleet.typesAndMarks(), { a: 'none', b: OLD, c: OLD, d: OLD });
  });

  await t.test('--stopped', async () => {
    assert.equal(await (await fleet.update(...GLOB, '--stopped')).run(), 'done');
    assert.deepEqual(await fleet.typesAndMarks(), { a: 'none', b: OLD, c: 'none', d: OLD });
  });

  await t.test('--running', async () => {
    for (const name of ['a', 'c']) await fleet.setType(name, OLD);
    const scene = await fleet.update(...GLOB, '--running');
    await assertEndsByRestart(fleet, scene, { a: OLD, b: 'none, true', c: OLD, d: 'none, true' });
  });

  await t.test('--target-machine-type', async () => {
    assert.equal(await (await fleet.update(...GLOB, '--target-machine-type', 'pc-q35-6.2')).run(), 'done');
    assert.deepEqual(await fleet.typesAndMarks(), {
      a: 'pc-q35-6.2',
      b: 'q35, false',
      c: 'pc-q35-6.2',
      d: 'q35, false',
    });
    await fleet.plane.runVerb('start', 'a');
    assert.equal((await fleet.instance('a')).status.machine.type, 'pc-q35-6.2');
  });
});

test('--max-restarts', async (t) => {
  const names = ['a', 'b', 'c', 'd', 'e'];
  const fleet = await Fleet.start(t, Object.fromEntries(names.map((name) => [name, { runs: true }])));
  const scene = await fleet.update('*rhel-8.*', '--restart-now', '--max-restarts', '2');
  const restarted: string[] = [];
  let maxConcurrent = 0;
  const onVerb = (vm: string) => {
    restarted.push(vm);
    maxConcurrent = Math.max(maxConcurrent, restarted.filter((name) => fleet.starts(name) < 2).length);
  };
  assert.equal(await scene.run({ onVerb }), 'done');
  assert.equal(maxConcurrent, 2);
  assert.deepEqual(restarted.toSorted(), names);
  assert.deepEqual(
    names.map((name) => fleet.starts(name)),
    [2, 2, 2, 2, 2],
  );
});

test('--max-failures', async (t) => {
  const fleet = await Fleet.start(t, { a: { runs: true }, b: { runs: true }, c: { runs: true }, d: { runs: false } });
  for (const name of ['a', 'b']) {
    fleet.plane.failStarts(name, new HypervisorError(`Cannot start domain "${name}"`, { permanent: true }));
  }
  const scene = await fleet.update('*rhel-8.*', '--restart-now', '--max-restarts=1', '--max-failures=1');
  assert.equal(await scene.run(), 'failed');
  const states = await scene.states();
  for (const name of ['a', 'b']) assert.match(states[name] ?? '', /^failed: cannot start again: /);
  assert.deepEqual([states['c'], states['d']], ['updated', 'done']);
  assert.equal(fleet.starts('c'), 1);
});

test('an alias is judged by the type of its guest, and its spec is left alone', async (t) => {
  const fleet = await Fleet.start(t, { since: { runs: true, type: 'q35' }, fresh: { runs: true, type: 'q35' } });
  // The VM has run since the alias stood for an older type.
  Object.assign(fleet.plane.guest('since').record, { machine: OLD });
  for (const { name } of fleet.plane.nodes) await fleet.plane.restartAgent(name);
  assert.equal((await fleet.instance('since')).spec.domain.machine.type, 'q35');
  await assertEndsByRestart(fleet, await fleet.update(...GLOB), { since: 'q35, true', fresh: 'q35' });
  assert.deepEqual([fleet.starts('since'), fleet.starts('fresh')], [2, 1]);
});

test('a default that itself matches the glob causes no loop', async (t) => {
  const fleet = await Fleet.start(t, {
    alias: { runs: true, type: 'q35' },
    older: { runs: true },
    stopped: { runs: false, type: 'q35' },
  });
  for (let round = 0; round < 3; round++) {
    assert.equal(await (await fleet.update('*q35*', '--restart-now')).run(), 'done');
  }
  assert.deepEqual(await fleet.typesAndMarks(), { alias: 'q35', older: 'q35', stopped: 'q35' });
  assert.deepEqual([fleet.starts('alias'), fleet.starts('older')], [1, 2]);
});
