/**
 * Creates VMs through the API with our webhook, operator and controllers, several at a time. Runs in a thread, without the
 * test runner's hooks on each promise. Two namespaces get the same names, and after each batch all VMs are deleted, so
 * that names are used again and memory stays bounded.
 */
import assert from 'node:assert/strict';
import { parentPort, workerData } from 'node:worker_threads';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { MemoryJournal } from '#engine/store/testing/memory-journal.ts';
import { directConnections } from '#test/support/vm-plane-nodes.ts';
import { advanceUntil, startVmPlaneServer } from '#test/support/vm-plane-server.ts';
import { aVm } from '#test/support/vm-plane.ts';

export interface Work {
  readonly creates: number;
}

export interface Report {
  readonly created: number;
  /** Numbers of different values. */
  readonly uuids: number;
  readonly serials: number;
  readonly mostStored: number;
  readonly residentMiB: number;
}

const NAMESPACES = ['one', 'two'];
const NAMES = 500;
const AT_ONCE = 20;
const ALL = '/apis/kubevirt.io/v1/virtualmachines';
const BATCH = NAMES * NAMESPACES.length;
const urlOf = (namespace: string) => `/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachines`;

const clock = new FakeClock();
const server = await startVmPlaneServer({ journal: new MemoryJournal(), clock, nodes: directConnections(() => []) });
const { api, store } = server;
const uuids = new Set<string>();
const serials = new Set<string>();
let created = 0;
let mostStored = 0;

async function create(namespace: string, name: string): Promise<void> {
  const vm = await api.ok('POST', urlOf(namespace), { body: aVm(name, { runStrategy: 'Halted' }) });
  const { uuid, serial } = vm.spec.template.spec.domain.firmware;
  assert.ok(typeof uuid === 'string' && typeof serial === 'string', `${namespace}/${name} has no uuid or serial`);
  created++;
  uuids.add(uuid.toLowerCase());
  serials.add(serial.toLowerCase());
}

async function createBatch(): Promise<void> {
  let next = 0;
  const creator = async () => {
    while (next < NAMES) {
      const name = `vm-${next++}`;
      await Promise.all(NAMESPACES.map((namespace) => create(namespace, name)));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, creator));
  await settle();
}

/** Waits until no component has anything left to do. */
async function settle(): Promise<void> {
  const idle = async () => {
    await api.settle();
    for (const controller of server.parts.controllers) await controller.idle();
  };
  await advanceUntil(clock, idle(), { turns: 150 });
}

/** Asserts that the store has the UUIDs of the answers: admission did not answer one UUID and store another. */
async function verifyStored(): Promise<void> {
  const { items } = await api.ok('GET', ALL);
  mostStored = Math.max(mostStored, items.length);
  const stored = new Set<string>();
  for (const { spec, status, metadata } of items) {
    const { uuid } = spec.template.spec.domain.firmware;
    assert.equal(status?.printableStatus, 'Stopped', `no controller has processed ${metadata.name}`);
    assert.ok(uuids.has(uuid));
    stored.add(uuid);
  }
  assert.equal(stored.size, BATCH);
}

async function deleteBatch(): Promise<void> {
  for (const namespace of NAMESPACES) await api.ok('DELETE', urlOf(namespace));
  await settle();
  assert.deepEqual((await api.ok('GET', ALL)).items, []);
}

for (const name of NAMESPACES) {
  await api.ok('POST', '/api/v1/namespaces', { body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } } });
}
const { creates } = workerData as Work;
while (created < creates) {
  await createBatch();
  await verifyStored();
  await deleteBatch();
}
await server.crash();
await store.close();
const residentMiB = process.memoryUsage().rss / 2 ** 20;
parentPort?.postMessage({
  created,
  uuids: uuids.size,
  serials: serials.size,
  mostStored,
  residentMiB,
} satisfies Report);
