/** virtctl update machine-types against the real API. Jobs get pods, but the test runs them. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { after, before, suite, test } from 'node:test';
import { TRANSITION_JOBS } from '#api/machine-types/kinds.ts';
import {
  buildPlanConfigMaps,
  buildProgressConfigMap,
  type EntryNote,
  type PlanEntry,
} from '#api/machine-types/plan.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { CONFIG_MAPS, NAMESPACES, NODES, PODS } from '#kube/core-kinds.ts';
import { NODE, Sink, startSubresourcesScene, type SubresourcesScene } from '#test/scenarios/subresources-scene.ts';
import type { Loose } from '#test/support/test-api.ts';

const SYSTEM = 'selfsame-system';
const OLD = 'pc-q35-rhel8.2.0';
const accounts = { group: '', version: 'v1', kind: 'ServiceAccount', plural: 'serviceaccounts', namespaced: true };

let scene: SubresourcesScene;
const cleanups: (() => unknown)[] = [];

before(async () => {
  scene = await startSubresourcesScene({ after: (fn) => cleanups.push(fn) });
  const { admin } = scene;
  const { items } = await admin.list(NAMESPACES);
  if (!items.some(({ metadata }) => metadata.name === SYSTEM)) {
    await admin.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: SYSTEM } });
  }
  const account = { namespace: SYSTEM, name: 'convert-machine-type' };
  await admin.create(accounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: account });
  const types = [
    { name: 'pc-q35-7.2', alias: 'q35' },
    { name: 'pc-q35-6.2', deprecated: true },
  ];
  const labelled = ['pc-q35-7.2', 'q35', 'pc-q35-6.2'].map((type) => [`machine-type.node.kubevirt.io/${type}`, 'true']);
  const labels: unknown = Object.fromEntries(labelled);
  const annotations = { 'selfsame.io/machine-types': JSON.stringify(types) };
  await admin.patch(NODES, { name: NODE }, { type: 'merge', body: { metadata: { labels, annotations } } });
});
after(async () => {
  await scene?.stop();
  for (const cleanup of cleanups) await cleanup();
});

const update = (...argv: string[]) => scene.virtctl('update', 'machine-types', ...argv);
const specWithType = (type: string) => ({ template: { spec: { domain: { machine: { type }, devices: {} } } } });

/** Returns the names of the existing Jobs. */
async function jobNames(): Promise<string[]> {
  const { items } = await scene.admin.list(TRANSITION_JOBS, { namespace: SYSTEM });
  return items.map(({ metadata }) => metadata.name);
}

const createdName = (out: string) => /^Successfully created job (\S+)\.\n/.exec(out)?.[1] ?? '';

async function createJob(...argv: string[]): Promise<string> {
  const { code, out, err } = await update(...argv);
  assert.equal(code, 0, err);
  return createdName(out);
}

const readJob = (name: string): Promise<Loose> => scene.admin.get(TRANSITION_JOBS, { namespace: SYSTEM, name });

async function envOf(name: string): Promise<string[]> {
  const [container] = (await readJob(name)).spec.template.spec.containers;
  return container.env.map((variable: Loose) => `${variable.name}=${variable.value}`);
}

interface Planned {
  readonly note?: EntryNote;
  readonly marked?: boolean;
  readonly runs?: boolean;
}

/** Writes what the program of the Job would have written: VMs of these names, a plan, and notes. */
async function writePlan(job: string, vms: Readonly<Record<string, Planned>>): Promise<void> {
  const reference = { namespace: SYSTEM, name: job, uid: (await readJob(job)).metadata.uid as string };
  const entries: PlanEntry[] = [];
  const notes = new Map<number, EntryNote>();
  for (const [i, [name, { note, marked, runs }]] of Object.entries(vms).entries()) {
    const { items } = await scene.admin.list(VIRTUAL_MACHINES, { namespace: 'default' });
    if (!items.some(({ metadata }) => metadata.name === name)) {
      await scene.createVm(name, {
        runStrategy: runs === true ? 'Always' : 'Halted',
        ...specWithType(note === undefined ? OLD : ''),
      });
    }
    if (marked === true) await scene.patchStatus(VIRTUAL_MACHINES, name, { machineTypeRestartRequired: true });
    const { uid } = (await scene.readVm(name)).metadata;
    const vmi = runs === true ? await scene.createVmi(name, { phase: 'Running', machine: { type: OLD } }) : undefined;
    const vmiUid = vmi === undefined ? {} : { vmiUid: vmi.metadata.uid as string };
    entries.push({ namespace: 'default', name, uid, ...vmiUid, act: 'clear', from: OLD, to: 'q35' });
    if (note !== undefined) notes.set(i, note);
  }
  for (const map of buildPlanConfigMaps(reference, entries)) await scene.admin.create(CONFIG_MAPS, map);
  await scene.admin.create(CONFIG_MAPS, buildProgressConfigMap(reference, 0, notes));
}

/** Returns the pod of a Job once it is created. */
async function podOf(job: string): Promise<string> {
  for (;;) {
    const labelSelector = `batch.kubernetes.io/job-name=${job}`;
    const { items } = await scene.admin.list(PODS, { namespace: SYSTEM, labelSelector });
    if (items[0] !== undefined) return items[0].metadata.name;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

suite('virtctl update machine-types', () => {
  const jobs: Record<string, { argv: string[]; want: string[] }> = {
    'a glob alone': {
      argv: ['*rhel-8.*'],
      want: ['JOB_GLOB=*rhel-8.*', 'JOB_RESTART_NOW=false', 'JOB_MAX_RESTARTS=10'],
    },
    'all flags together': {
      argv: [
        ...['--which-matches-glob', '*rhel-8.*', '--namespace', 'default', '--label-selector', 'tier in (a,b)'],
        ...['--restart-required', '--name', 'db', '--running', '--target-machine-type', 'pc-q35-7.2'],
        ...['--max-restarts', '3', '--max-failures', '2'],
      ],
      want: [
        'JOB_GLOB=*rhel-8.*',
        'JOB_NAMESPACE=default',
        'JOB_LABEL_SELECTOR=tier in (a,b)',
        'JOB_RESTART_NOW=true',
        'JOB_NAME_OF_VM=db',
        'JOB_STATE=running',
        'JOB_TARGET=pc-q35-7.2',
        'JOB_MAX_RESTARTS=3',
        'JOB_MAX_FAILURES=2',
      ],
    },
  };
  // The VM of --name must exist.
  before(() => scene.createVm('db', { runStrategy: 'Halted' }));
  for (const [title, { argv, want }] of Object.entries(jobs)) {
    test(`creates a Job from ${title}`, async () => assert.deepEqual(await envOf(await createJob(...argv)), want));
  }

  const refusals: Record<string, { argv: string[]; err: RegExp }> = {
    'a malformed glob': {
      argv: ['[--'],
      err: /^error: --which-matches-glob: "\[--": syntax error in pattern; expected a glob of machine types, /m,
    },
    'a namespace that does not exist': {
      argv: ['*', '-n', 'nowhere'],
      err: /^error: namespaces "nowhere" not found\n$/,
    },
    'a VM that does not exist': {
      argv: ['*', '--name', 'nosuch'],
      err: /^error: Cannot select VM nosuch: there is no such VM in any namespace; list the VMs with /,
    },
    'a target that VMs may not have': {
      argv: ['*', '--target-machine-type', 'microvm'],
      err: /^error: Cannot use the machine type "microvm": the KubeVirt object allows only q35\*, pc-q35\*\n$/,
    },
    'a target that no node offers': {
      argv: ['*', '--target-machine-type', 'pc-q35-99.0'],
      err: /^error: Cannot use the machine type "pc-q35-99.0": no node offers it; /,
    },
    'an output format without a dry run': {
      argv: ['*', '-o', 'json'],
      err: /^error: --output requires --dry-run\nUsage: /,
    },
    'waiting for a Job that is not created': {
      argv: ['*', '--dry-run', '--wait'],
      err: /^error: --wait cannot be combined with --dry-run\nUsage: /,
    },
    'too many arguments': { argv: ['*', 'b'], err: /^error: 2 globs are given; expected one, in quotes, / },
  };
  for (const [title, { argv, err }] of Object.entries(refusals)) {
    test(`refuses ${title}, and creates nothing`, async () => {
      const existing = await jobNames();
      const answer = await update(...argv);
      assert.deepEqual([answer.code, answer.out], [answer.err.includes('\nUsage: ') ? 2 : 1, '']);
      assert.match(answer.err, err);
      assert.deepEqual(await jobNames(), existing);
    });
  }

  test('--dry-run shows the plan, and creates nothing', async () => {
    const [stopped, running, other] = [scene.newName(), scene.newName(), scene.newName()];
    await scene.createVm(stopped, { runStrategy: 'Halted', ...specWithType('pc-q35-rhel8.4.0') });
    await scene.createVm(running, { runStrategy: 'Always', ...specWithType('q35') });
    await scene.createVmi(running, {
      spec: { domain: { machine: { type: 'q35' }, devices: {} } },
      phase: 'Running',
      machine: { type: 'pc-q35-rhel8.4.0' },
    });
    await scene.createVm(other, { runStrategy: 'Halted', ...specWithType('pc-q35-rhel9.0.0') });
    const existing = await jobNames();
    const { code, out, err } = await update('*rhel-8.4*', '--dry-run');
    assert.equal(code, 0, err);
    const rows = out.split('\n').map((line) => line.split(/ {3,}/));
    assert.deepEqual(rows.slice(0, 3), [
      ['NAMESPACE', 'NAME', 'NOW', 'THEN', 'RUNNING', 'WHAT HAPPENS', 'GUEST SEES'],
      ['default', stopped, 'pc-q35-rhel8.4.0', 'q35 (pc-q35-7.2)', 'no', 'clear the type', 'nothing: it never ran'],
      [
        ...['default', running, 'pc-q35-rhel8.4.0', 'q35 (pc-q35-7.2)', 'yes'],
        ...['mark: restart required', 'machine type'],
      ],
    ]);
    assert.match(out, /\n2 VMs, 1 of them running\. Nothing was changed\.\n$/);
    const json = await update('*rhel-8.4*', '--dry-run', '--running', '-o', 'json');
    assert.deepEqual(
      (JSON.parse(json.out) as Loose[]).map(({ name, act }) => [name, act]),
      [[running, 'mark']],
    );
    assert.deepEqual(await jobNames(), existing);
    assert.equal((await scene.readVm(stopped)).spec.template.spec.domain.machine.type, 'pc-q35-rhel8.4.0');
  });

  test('list shows the current state of every VM', async () => {
    const job = await createJob('*rhel-8.*');
    assert.match(
      (await update('list', job)).out,
      /: it has no plan yet; nothing was changed\. See kubectl logs job\/\S+ -n selfsame-system\n$/,
    );
    const [open, marked, bad] = [scene.newName(), scene.newName(), scene.newName()];
    await writePlan(job, {
      [open]: {},
      [marked]: { note: { state: 'updated' }, marked: true, runs: true },
      [bad]: { note: { state: 'failed', reason: 'no way' } },
    });
    const { out } = await update('list', job);
    const rows = out.split('\n').map((line) => line.split(/ {3,}/));
    assert.deepEqual(rows[1]?.slice(0, 5), [job, '*rhel-8.*', 'Running', '3', '1']);
    assert.equal(rows[3]?.[0], `${job}: 1 pending, 1 restart required, 1 failed`);
    assert.deepEqual(rows.slice(6, 9), [
      ['default', open, OLD, 'q35', 'pending', '-'],
      ['default', marked, OLD, 'q35', 'restart required', '-'],
      ['default', bad, OLD, 'q35', 'failed', 'no way'],
    ]);
    const all = JSON.parse((await update('list', '-o', 'json')).out) as Loose[];
    assert.deepEqual(
      all.find((row) => row.job === job)?.virtualMachines.map((vm: Loose) => vm.state),
      ['pending', 'restartRequired', 'failed'],
    );
    assert.match(
      (await update('list', 'nobody')).err,
      /^error: Cannot find the job nobody in namespace selfsame-system; list /,
    );
  });

  test('delete stops the Job, removes marks, and leaves nothing behind', async () => {
    const job = await createJob('*rhel-8.*');
    const { uid } = (await readJob(job)).metadata;
    const [done, marked] = [scene.newName(), scene.newName()];
    await writePlan(job, {
      [done]: { note: { state: 'done' } },
      [marked]: { note: { state: 'restartRequired' }, marked: true, runs: true },
    });
    await podOf(job);
    const { code, out, err } = await update('delete', job);
    assert.equal(code, 0, err);
    assert.match(out, new RegExp(`^Job ${job}: 1 restart required, 1 done\\.\n\nNot done:\n`));
    assert.match(out, new RegExp(`Cleared machineTypeRestartRequired of 1 VM\\.\nJob ${job} was deleted\\.\n$`));
    assert.equal((await scene.readVm(marked)).status.machineTypeRestartRequired, false);
    assert.ok(!(await jobNames()).includes(job));
    for (const [type, labelSelector] of [
      [CONFIG_MAPS, `selfsame.io/machine-types=${uid}`],
      [PODS, `batch.kubernetes.io/job-name=${job}`],
    ] as const) {
      assert.deepEqual((await scene.admin.list(type, { namespace: SYSTEM, labelSelector })).items, []);
    }
    assert.equal((await update('delete', job)).code, 1);
  });

  test('delete keeps marks that another Job maintains', async () => {
    const [first, second] = [await createJob('*rhel-8.*'), await createJob('*rhel-8.2*')];
    const vm = scene.newName();
    await writePlan(first, { [vm]: { note: { state: 'restartRequired' }, marked: true, runs: true } });
    const { uid } = (await scene.readVm(vm)).metadata;
    const { uid: vmiUid } = (await scene.readVmi(vm)).metadata;
    const reference = { namespace: SYSTEM, name: second, uid: (await readJob(second)).metadata.uid as string };
    const entry: PlanEntry = { namespace: 'default', name: vm, uid, vmiUid, act: 'clear', from: OLD, to: 'q35' };
    for (const map of buildPlanConfigMaps(reference, [entry])) await scene.admin.create(CONFIG_MAPS, map);
    const { code, err } = await update('delete', first);
    assert.equal(code, 0, err);
    assert.equal((await scene.readVm(vm)).status.machineTypeRestartRequired, true);
    await update('delete', second);
    assert.equal((await scene.readVm(vm)).status.machineTypeRestartRequired, false);
  });

  test('delete refuses a Job of another program', async () => {
    const containers = [{ name: 'c', image: 'example.org/x' }];
    const spec = { template: { spec: { restartPolicy: 'Never', containers } } };
    const metadata = { namespace: SYSTEM, name: 'strange' };
    await scene.admin.create(TRANSITION_JOBS, { apiVersion: 'batch/v1', kind: 'Job', metadata, spec });
    const { code, err } = await update('delete', 'strange');
    assert.equal(code, 1);
    assert.match(err, /^error: Cannot use the job strange: it was not created by virtctl update machine-types\n$/);
    assert.ok((await jobNames()).includes('strange'));
  });

  test('--wait ends with the Job, and reports its result', async () => {
    const out = new Sink();
    const ended = scene.virtctlInteractive(Readable.from([]), out, 'update', 'machine-types', '*rhel-8.*', '--wait');
    await once(out, 'grown');
    const job = createdName(out.text);
    await writePlan(job, { [scene.newName()]: { note: { state: 'done' } } });
    const pod = { namespace: SYSTEM, name: await podOf(job) };
    const body = { status: { phase: 'Succeeded' } };
    await scene.admin.patch(PODS, pod, { type: 'merge', body }, { subresource: 'status' });
    const { code, err } = await ended;
    assert.equal(code, 0, err);
    assert.match(err, /: 1\/1: 1 done\n$/);
    assert.ok(out.text.endsWith(`Job ${job} is complete: 1 done\n`), out.text);
  });

  test('supported lists types, their VMs, and VMs with unsupported types', async () => {
    const stranded = scene.newName();
    await scene.createVm(stranded, { runStrategy: 'Halted', ...specWithType('pc-q35-rhel7.6.0') });
    const { code, out, err } = await update('supported');
    assert.equal(code, 0, err);
    const rows = out.split('\n').map((line) => line.split(/ {3,}/));
    assert.deepEqual(rows[0], ['MACHINE TYPE', 'ALIAS', 'DEPRECATED', 'ALLOWED', 'NODES', 'VMS']);
    assert.deepEqual(
      rows.slice(1, 3).map((row) => row.slice(0, 5)),
      [
        ['pc-q35-6.2', '-', 'yes', 'yes', '1'],
        ['pc-q35-7.2', 'q35', 'no', 'yes', '1'],
      ],
    );
    assert.ok(
      rows.some((row) => row.join(' ') === `default ${stranded} pc-q35-rhel7.6.0 no`),
      out,
    );
  });
});
