/**
 * A constant fleet on the real program, beside which VMs are created, migrated, restarted and deleted: after a warm-up the
 * memory of the server and of the node agents and the size of the store do not grow. The guests are simulated. The memory
 * is measured after a garbage collection in each process (test/support/report-memory.ts). soak.test.ts does the same in
 * one process with hours of simulated time, and counts the objects.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import type { Client } from '#client/client.ts';
import { getIfExists } from '#client/get-if-exists.ts';
import { listAll } from '#client/paged-list.ts';
import { createClient } from '#client/rest-client.ts';
import { CONFIG_MAPS } from '#kube/core-kinds.ts';
import { systemClock } from '#lib/clock.ts';
import { poll } from '#node/hypervisor/qemu/process/timing.ts';
import { EVENTS } from '#runtime/events.ts';
import { findGrowth, type Sample } from '#test/support/growth.ts';
import { createTemporaryDir, openTransport, startServer } from '#test/support/server-process.ts';
import { aVm } from '#test/support/vm-plane.ts';

const FLEET = 6;
/** VMs that each round creates and deletes. */
const CHURN = 12;
const WARM_UP_ROUNDS = 12;
/** Two periods after the warm-up are compared. */
const PERIOD_ROUNDS = 10;
const NODES = 2;
/** Short, so that the number of Events is constant after the warm-up. */
const EVENT_TTL = '10s';
/**
 * These writes fill the history that the store keeps for watches (64 MiB), so that it does not grow any more. Each has
 * about the size of the objects of a VM.
 */
const HISTORY = { writers: 16, writes: 1200, bytes: 4000 };
const NAMESPACE = 'default';
const PATIENCE = { timeoutMs: 120_000, everyMs: 100 };
const LIMIT_MS = 1_200_000;
/**
 * The growth from one period to the next that is not yet a failure. Heap: compiled code, and Events that components
 * remember for ten minutes. Resident memory depends on the allocator as well. Events: the server removes many at a time, so
 * that their number goes up and down. Store: pages that are not full.
 */
const TOLERANCE = { heap: 1.05, rss: 1.15, events: Infinity, store: 1.1 };

/** Waits until the condition holds. */
async function waitUntil(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const reached = await poll(systemClock, PATIENCE, async () => ((await holds()) ? true : undefined));
  assert.ok(reached, `${what} within ${PATIENCE.timeoutMs} ms`);
}

interface SoakPlane {
  readonly client: Client;
  readonly dataDir: string;
  readonly memoryDir: string;
  readonly serverPid: number;
}

async function startPlane(t: TestContext): Promise<SoakPlane> {
  const dir = createTemporaryDir(t);
  const [dataDir, memoryDir] = [join(dir, 'data'), join(dir, 'memory')];
  mkdirSync(memoryDir);
  const script = fileURLToPath(new URL('../support/report-memory.ts', import.meta.url));
  const ends: (() => unknown)[] = [];
  const server = await startServer(
    { after: (end) => ends.push(end) },
    {
      dataDir,
      command: ['up', '--hypervisor', 'fake', '--nodes', String(NODES), '--event-ttl', EVENT_TTL],
      env: { NODE_OPTIONS: `--import=${script}`, MEMORY_REPORT_DIR: memoryDir },
    },
  );
  t.after(async () => {
    // SIGTERM before SIGKILL: the server then also stops its nodes.
    await server.kill('SIGTERM');
    for (const end of ends) end();
  });
  return { client: createClient(openTransport(t, server.access())), dataDir, memoryDir, serverPid: server.pid };
}

async function fillHistory({ client }: SoakPlane): Promise<void> {
  const fill = async (writer: number) => {
    const name = { namespace: NAMESPACE, name: `filler-${writer}` };
    await client.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata: name });
    for (let n = 0; n < HISTORY.writes; n++) {
      const body = { data: { n: String(n), text: 'x'.repeat(HISTORY.bytes) } };
      await client.patch(CONFIG_MAPS, name, { type: 'merge', body });
    }
    await client.delete(CONFIG_MAPS, name);
  };
  await Promise.all(Array.from({ length: HISTORY.writers }, (_, writer) => fill(writer)));
}

async function awaitInstance(client: Client, name: string, isExpected: (uid: string | undefined) => boolean) {
  await waitUntil(`the expected state of instance ${name}`, async () => {
    const vmi = await getIfExists(client, VIRTUAL_MACHINE_INSTANCES, { namespace: NAMESPACE, name });
    return isExpected(vmi?.status?.phase === 'Running' ? vmi.metadata.uid : vmi && '');
  });
}

const isRunning = (uid: string | undefined) => uid !== undefined && uid !== '';
const isGone = (uid: string | undefined) => uid === undefined;

async function createVms(client: Client, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const vm = aVm(name, { runStrategy: 'Always' });
    await client.create(VIRTUAL_MACHINES, { ...vm, metadata: { ...vm.metadata, namespace: NAMESPACE } });
  }
  for (const name of names) await awaitInstance(client, name, isRunning);
}

async function runRound({ client }: SoakPlane, round: number): Promise<void> {
  const created = Array.from({ length: CHURN }, (_, index) => `r${round}-${index}`);
  await createVms(client, created);
  const vmiName = `fleet-${round % FLEET}`;
  const migration = { namespace: NAMESPACE, name: `m-${round}` };
  await client.create(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: migration,
    spec: { vmiName },
  });
  await waitUntil(`the end of migration ${migration.name}`, async () => {
    const { status } = await client.get(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, migration);
    return status?.phase === 'Succeeded';
  });
  // The next instance of the VM replaces this one.
  const restarted = `fleet-${(round + 1) % FLEET}`;
  const { uid } = (await client.get(VIRTUAL_MACHINE_INSTANCES, { namespace: NAMESPACE, name: restarted })).metadata;
  await client.delete(VIRTUAL_MACHINE_INSTANCES, { namespace: NAMESPACE, name: restarted });
  await awaitInstance(client, restarted, (next) => isRunning(next) && next !== uid);
  for (const name of created) await client.delete(VIRTUAL_MACHINES, { namespace: NAMESPACE, name });
  for (const name of created) await awaitInstance(client, name, isGone);
}

/** Returns the server and the processes that it has started for the nodes. */
function processesOf({ serverPid }: SoakPlane): Readonly<Record<string, number>> {
  const children = readdirSync(`/proc/${serverPid}/task`).flatMap((task) =>
    readFileSync(`/proc/${serverPid}/task/${task}/children`, 'latin1').split(' ').filter(Boolean),
  );
  const agents = children.map(Number).sort((a, b) => a - b);
  return { server: serverPid, ...Object.fromEntries(agents.map((pid, index) => [`agent ${index}`, pid])) };
}

async function takeSample(plane: SoakPlane): Promise<Sample> {
  const sample: Record<string, number> = {};
  for (const [name, pid] of Object.entries(processesOf(plane))) {
    const file = join(plane.memoryDir, String(pid));
    rmSync(file, { force: true });
    process.kill(pid, 'SIGUSR2');
    await waitUntil(`the memory of ${name}`, () => existsSync(file));
    const { heap, rss } = JSON.parse(readFileSync(file, 'utf8')) as { heap: number; rss: number };
    sample[`heap of ${name}`] = heap;
    sample[`rss of ${name}`] = rss;
  }
  const store = join(plane.dataDir, 'store.db');
  const events = (await listAll(plane.client, EVENTS, { namespace: NAMESPACE })).items.length;
  return { ...sample, events, store: statSync(store).size + statSync(`${store}-wal`).size };
}

test('the memory of server and agents is constant at a constant fleet', { timeout: LIMIT_MS }, async (t) => {
  const plane = await startPlane(t);
  await fillHistory(plane);
  await createVms(
    plane.client,
    Array.from({ length: FLEET }, (_, index) => `fleet-${index}`),
  );
  const samples: Sample[] = [];
  for (let round = 0; round < WARM_UP_ROUNDS + 2 * PERIOD_ROUNDS; round++) {
    await runRound(plane, round);
    const sample = await takeSample(plane);
    t.diagnostic(`round ${round}: ${JSON.stringify(sample)}`);
    if (round >= WARM_UP_ROUNDS) samples.push(sample);
  }
  const names = Object.keys(samples[0]!);
  assert.equal(names.filter((name) => name.startsWith('heap of agent')).length, NODES, 'the agents are measured');
  const counts = samples.map(({ events = 0 }) => events);
  assert.ok(
    counts.some((count, index) => count < (counts[index - 1] ?? 0)),
    `Events expire: ${counts.join(', ')}`,
  );
  const tolerance = Object.fromEntries(
    names.map((name) => [name, TOLERANCE[name.split(' ')[0] as keyof typeof TOLERANCE]]),
  );
  assert.deepEqual(findGrowth(samples, { tolerance, noisy: new Set(names) }), []);
});
