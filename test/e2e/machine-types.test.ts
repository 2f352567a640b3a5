/**
 * Real guests change from one machine type to the next: virtctl creates the Job, an agent runs it, and the guests report
 * what they see. Except for the type they are the same machines. Two guests, six boots: first restarted by their owners,
 * then by the Job itself, whose agent is killed meanwhile.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { TRANSITION_JOBS, type TransitionJob } from '#api/machine-types/kinds.ts';
import { GUEST_IMAGE, SYSTEM_NAMESPACE } from '#api/names.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { Informer } from '#client/informer.ts';
import { createClient } from '#client/rest-client.ts';
import { isTrue } from '#kube/conditions.ts';
import { PERSISTENT_VOLUME_CLAIMS, PODS, SECRETS, type Pod } from '#kube/core-kinds.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import { systemClock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import { poll } from '#node/hypervisor/qemu/process/timing.ts';
import type { GuestReport } from '#cli/tour/guest-report.ts';
import { startRealPlane, type RealPlane } from '#test/support/real-guests.ts';
import { openTransport } from '#test/support/server-process.ts';

const namespace = 'default';
const ACCOUNT = 'convert-machine-type';
const virtctl = new URL('../../virtctl', import.meta.url).pathname;
const [OLD, NEW] = ['pc-q35-6.2', 'pc-q35-7.2'];
const PATIENCE = { timeoutMs: 180_000, everyMs: 50 };
const NAMES = ['runs', 'second'] as const;
const cleanUps: (() => unknown)[] = [];
const scope = { after: (fn: () => unknown) => void cleanUps.unshift(fn) };
let plane: RealPlane;
/** Every instance that existed, by the name of its VM. */
const instances = new Map<string, Set<string>>(NAMES.map((name) => [name, new Set()]));

before(async () => {
  plane = await startRealPlane(scope);
  const vmis = new Informer({
    reader: plane.client,
    type: VIRTUAL_MACHINE_INSTANCES,
    clock: systemClock,
    log: silentLog,
  });
  vmis.onChange((_, { new: vmi }) => vmi && instances.get(vmi.metadata.name)?.add(vmi.metadata.uid));
  const watching = new AbortController();
  const watched = vmis.start(watching);
  scope.after(async () => {
    watching.abort();
    await watched;
  });
});

after(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
});

async function run(...args: string[]): Promise<string> {
  const command = ['--kubeconfig', join(plane.dataDir, 'kubeconfig'), 'update', 'machine-types', ...args];
  const { stdout } = await promisify(execFile)(virtctl, command);
  return stdout;
}

const jobIn = (text: string) => /^Successfully created job (\S+)\.$/m.exec(text)?.[1] ?? assert.fail(text);

/** Returns what `list` reports for each VM of the Job: its state, with the reason if there is one. */
async function readList(job: string): Promise<{ status: string; states: Record<string, string> }> {
  interface Row {
    readonly name: string;
    readonly state: string;
    readonly reason?: string;
  }
  const [found] = JSON.parse(await run('list', job, '-o', 'json')) as { status: string; virtualMachines: Row[] }[];
  assert.ok(found);
  const states = found.virtualMachines.map(({ name, state, reason }) => [
    name,
    [state, reason].filter(Boolean).join(': '),
  ]);
  return { status: found.status, states: Object.fromEntries(states) };
}

const isComplete = (job: TransitionJob | undefined) =>
  job?.status?.conditions?.some(({ type, status }) => type === 'Complete' && status === 'True') ?? false;
const waitForCompletion = (job: string) =>
  plane.awaitObject(TRANSITION_JOBS, job, isComplete, { namespace: SYSTEM_NAMESPACE });

async function podOf(job: string): Promise<Stored<Pod>> {
  const labelSelector = `batch.kubernetes.io/job-name=${job}`;
  const { items } = await plane.client.list(PODS, { namespace: SYSTEM_NAMESPACE, labelSelector });
  assert.equal(items.length, 1);
  return items[0]!;
}

function aVm(name: string): VirtualMachine {
  const disks = ['root', 'scratch'];
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace, labels: { moves: 'yes' } },
    spec: {
      runStrategy: 'Always',
      template: {
        spec: {
          domain: {
            machine: { type: OLD },
            memory: { guest: '128Mi' },
            firmware: {
              kernelBoot: { kernelArgs: 'console=ttyS0 quiet no_timer_check', container: { image: GUEST_IMAGE } },
            },
            devices: {
              disks: disks.map((disk) => ({ name: disk, serial: disk, disk: { bus: 'virtio' as const } })),
              interfaces: [{ name: 'default', masquerade: {} }],
            },
          },
          networks: [{ name: 'default', pod: {} }],
          volumes: [
            { name: 'root', persistentVolumeClaim: { claimName: `${name}-root` } },
            { name: 'scratch', emptyDisk: { capacity: '1Mi' } },
          ],
        },
      },
    },
  };
}

async function launch(name: string): Promise<GuestReport> {
  await plane.create(PERSISTENT_VOLUME_CLAIMS, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: `${name}-root`, namespace },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '4Mi' } } },
  });
  await plane.create(VIRTUAL_MACHINES, aVm(name));
  const report = await plane.guest(name).awaitBoot();
  assert.equal(report.facts['machine'], OLD);
  await plane.guest(name).runCommand(`write ${rootOf(report)} ${name}`, /GUEST wrote/);
  return report;
}

const rootOf = ({ disks }: GuestReport) => disks.find(({ serial }) => serial === 'root')?.name ?? assert.fail();

/** Returns what the guest sees, without the machine type and the values of one boot. Linux names disks as it finds them. */
function identityOf({ facts, pci, disks, nics }: GuestReport) {
  const found = disks.map(({ pci: at, serial, sectors, readonly }) => ({ at, serial, sectors, readonly }));
  return {
    facts: { ...facts, machine: '', bootid: '', memory: '' },
    pci,
    nics,
    disks: found.sort((a, b) => (a.serial < b.serial ? -1 : 1)),
  };
}

/** Asserts that the guest has booted again on this type, and that nothing else has changed. */
async function assertRebooted(name: string, since: GuestReport, type: string): Promise<GuestReport> {
  const report = await plane.guest(name).awaitBoot({ afterBootId: since.facts['bootid'] ?? '' });
  assert.equal(report.facts['machine'], type);
  assert.deepEqual(identityOf(report), identityOf(since));
  const root = await plane.guest(name).runCommand(`read ${rootOf(report)}`, /GUEST read \S+ \S+/);
  assert.match(root, new RegExp(`GUEST read \\S+ ${name}`));
  return report;
}

const typeOf = ({ spec }: VirtualMachine) => spec.template?.spec?.domain.machine?.type ?? '';
const markOf = ({ status }: VirtualMachine) => status?.machineTypeRestartRequired;
const vm = (name: string) => plane.client.get(VIRTUAL_MACHINES, { namespace, name });
const uidOf = async (name: string) => (await plane.guest(name).vmi()).metadata.uid;

test('guests change their machine type and keep their identity', { timeout: 600_000 }, async (t) => {
  const first = await Promise.all(NAMES.map(launch));
  let [runs, second] = first as [GuestReport, GuestReport];
  await plane.put('virtualmachines/second/stop');
  const isStopped = ({ status }: VirtualMachine) => status?.printableStatus === 'Stopped' && status.created !== true;
  await plane.guest('second').awaitVm('is stopped', isStopped);
  const filter = ['--label-selector', 'moves=yes'];

  await t.test('a dry run lists both VMs and changes nothing', async () => {
    const plan = await run('pc-q35-6.*', ...filter, '--dry-run');
    assert.match(plan, /runs +pc-q35-6\.2 .* yes +clear the type, mark: restart required +machine type$/m);
    assert.match(plan, /second +pc-q35-6\.2 .* no +clear the type +machine type$/m);
    for (const name of NAMES) assert.equal(typeOf(await vm(name)), OLD);
  });

  let job = '';
  await t.test('a running VM is marked and keeps running; a stopped VM is only changed', async () => {
    const uid = await uidOf('runs');
    job = jobIn(await run('pc-q35-6.*', ...filter));
    await plane.guest('runs').awaitVm('is marked', (one) => markOf(one) === true);
    await plane.guest('second').awaitVm('is changed', (one) => typeOf(one) === '');
    assert.equal(typeOf(await vm('runs')), '');
    assert.equal(markOf(await vm('second')), undefined);
    const { metadata, status } = await plane.guest('runs').vmi();
    assert.deepEqual([metadata.uid, status?.machine?.type], [uid, OLD], 'it was not restarted');
    assert.deepEqual(await readList(job), { status: 'Running', states: { runs: 'restartRequired', second: 'done' } });
  });

  await t.test('the Job has its own service account with only the rights that it needs', async () => {
    const [program, ...others] = plane.programs();
    assert.ok(program !== undefined && others.length === 0);
    assert.equal((await podOf(job)).spec['serviceAccountName'], ACCOUNT);
    const { server, certificateAuthority } = plane.server.access();
    const token = readFileSync(program.tokenFile, 'utf8');
    const access = { server, namespace, token, insecureSkipTlsVerify: false };
    const itself = createClient(
      openTransport(scope, { ...access, ...(certificateAuthority && { certificateAuthority }) }),
    );
    assert.equal((await itself.list(VIRTUAL_MACHINES)).items.length, NAMES.length);
    const me = `User "system:serviceaccount:${SYSTEM_NAMESPACE}:${ACCOUNT}" cannot`;
    const forbidden: Record<string, () => Promise<unknown>> = {
      'list resource "secrets"': () => itself.list(SECRETS, { namespace: SYSTEM_NAMESPACE }),
      'delete resource "virtualmachines"': () => itself.delete(VIRTUAL_MACHINES, { namespace, name: 'second' }),
      'create resource "virtualmachines"': () => itself.create(VIRTUAL_MACHINES, aVm('another')),
      'delete resource "jobs"': () => itself.delete(TRANSITION_JOBS, { namespace: SYSTEM_NAMESPACE, name: job }),
      'list resource "pods"': () => itself.list(PODS, { namespace: SYSTEM_NAMESPACE }),
    };
    for (const [what, ask] of Object.entries(forbidden)) {
      await assert.rejects(ask, ({ message }: Error) => message.includes(`${me} ${what}`), what);
    }
  });

  await t.test('after their owner restarts them, the VMs run on the next type, and the Job completes', async () => {
    for (const verb of ['runs/restart', 'second/start']) await plane.put(`virtualmachines/${verb}`);
    [runs, second] = await Promise.all([assertRebooted('runs', runs, NEW), assertRebooted('second', second, NEW)]);
    await waitForCompletion(job);
    assert.equal(markOf(await vm('runs')), false);
    assert.deepEqual(await readList(job), { status: 'Complete', states: { runs: 'done', second: 'done' } });
    assert.deepEqual(plane.programs(), []);
  });

  await t.test(
    'a VM with an alias that runs on the newest type is not changed, although the type matches',
    async () => {
      // Both have the default q35 by now.
      for (const name of NAMES) assert.equal(typeOf(await vm(name)), 'q35');
      const uids = await Promise.all(NAMES.map(uidOf));
      assert.match(await run('pc-q35-7.*', ...filter, '--dry-run'), /^No VM needs a change/);
      job = jobIn(await run('pc-q35-7.*', ...filter, '--restart-now', '--wait'));
      assert.deepEqual(await readList(job), { status: 'Complete', states: {} });
      assert.deepEqual(await Promise.all(NAMES.map(uidOf)), uids);
    },
  );

  await t.test('the Job continues after its agent is killed, and no VM is restarted twice', async () => {
    // Only the type of the running instances matches.
    const uids = await Promise.all(NAMES.map(uidOf));
    const to = ['--target-machine-type', OLD, '--restart-now', '--max-restarts', '1'];
    const printed = run('pc-q35-7.*', ...filter, ...to, '--wait');
    printed.catch(() => {}); // Awaited below.
    // Instances that are not being deleted; the Job chooses the order.
    const staying = async () => {
      const { items } = await plane.client.list(VIRTUAL_MACHINE_INSTANCES, { namespace });
      return items.filter((vmi) => uids.includes(vmi.metadata.uid) && !isDeleting(vmi));
    };
    await poll(systemClock, PATIENCE, async () => ((await staying()).length < NAMES.length ? true : undefined));
    const [program] = plane.programs();
    assert.ok(program);
    process.kill(program.parent, 'SIGKILL');
    assert.equal((await staying()).length, 1, 'one at a time');
    const next = await poll(systemClock, PATIENCE, () => {
      const programs = plane.programs();
      assert.ok(programs.length <= 1, 'never two programs at a time');
      return programs.find(({ pid }) => pid !== program.pid);
    });
    assert.ok(next, 'the next agent starts the program again');

    job = jobIn(await printed);
    [runs, second] = await Promise.all([assertRebooted('runs', runs, OLD), assertRebooted('second', second, OLD)]);
    assert.deepEqual(await readList(job), { status: 'Complete', states: { runs: 'done', second: 'done' } });
    assert.equal((await podOf(job)).status?.containerStatuses?.[0]?.restartCount, 1);
    for (const name of NAMES) {
      assert.equal(typeOf(await vm(name)), OLD);
      assert.notEqual(markOf(await vm(name)), true);
      assert.equal(instances.get(name)?.size, 3, 'the first, and one for each of two restarts');
    }
  });

  await t.test(
    'a VM with an alias that runs on an old type is marked until it is stopped, and its spec is not changed',
    async () => {
      const set = [{ op: 'replace', path: '/spec/template/spec/domain/machine/type', value: 'q35' }] as const;
      await plane.client.patch(VIRTUAL_MACHINES, { namespace, name: 'runs' }, { type: 'json', body: [...set] });
      job = jobIn(
        await run('--which-matches-glob', 'pc-q35-6.*', '--name', 'runs', '--running', '--namespace', namespace),
      );
      await plane.guest('runs').awaitVm('is marked', (one) => markOf(one) === true);
      assert.equal(typeOf(await vm('runs')), 'q35');
      await plane.put('virtualmachines/runs/stop');
      await waitForCompletion(job);
      assert.equal(markOf(await vm('runs')), false);
      assert.equal(typeOf(await vm('second')), OLD, 'the other VM is not selected');
      assert.ok(isTrue((await plane.guest('second').vmi()).status?.conditions, 'Ready'));
    },
  );

  await t.test('supported lists the types of the nodes and the number of VMs', async () => {
    const supported = await run('supported');
    assert.match(supported, /^pc-q35-7\.2 +q35 .* 2 +1$/m);
    assert.match(supported, /^pc-q35-6\.2 +- .* 2 +1$/m);
  });
});
