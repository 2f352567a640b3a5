/**
 * A constant fleet, beside which VMs are created, migrated, restarted, snapshotted and deleted for hours of simulated
 * time: after a warm-up nothing may grow. The whole plane runs in this process, with simulated guests, a store on disk and
 * a clock that only the test advances. The heap after a garbage collection is thus that of the server and of all node
 * agents together.
 */
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { SqliteJournal } from '#engine/store/sqlite/sqlite-journal.ts';
import { findGrowth, type Sample } from '#test/support/growth.ts';
import { createTemporaryDir } from '#test/support/server-process.ts';
import { aSnapshot } from '#test/support/snapshots.ts';
import { aClaim, aVm, aVmOnClaim, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const MINUTE_MS = 60_000;
const EVENT_TTL_MS = 10 * MINUTE_MS;
/** Small, so that the history of the store reaches its limit in the warm-up. */
const MAX_HISTORY_EVENTS = 1000;
const FLEET = 12;
/** Few, so that the number of finished migrations that are kept for each reaches its limit in the warm-up. */
const MIGRATED = 3;
/** VMs that each round creates and deletes. */
const CHURN = 6;
/** More than an hour of simulated time, after which finished migrations of deleted VMs are removed. */
const WARM_UP_ROUNDS = 24;
/** Two periods after the warm-up are compared. */
const PERIOD_ROUNDS = 16;
const LIMIT_MS = 900_000;
/** The number of simulated seconds that a migration may take. */
const MIGRATION_TRIES = 30;
/**
 * The growth from one period to the next that is not yet a failure. Heap: compiled code. File: pages that are not full.
 * Metrics: combinations of labels that are rare. The others: a round does not always take the same simulated time.
 */
const TOLERANCE: Readonly<Record<string, number>> = {
  heap: 1.03,
  file: 1.1,
  metrics: 1.02,
  timers: 1.02,
  'objects events': 1.1,
  'objects virtualmachineinstancemigrations.kubevirt.io': 1.1,
};

async function startFleet(t: TestContext): Promise<{ readonly plane: VmPlane; readonly file: string }> {
  const file = join(createTemporaryDir(t), 'store.db');
  const plane = await startVmPlane(t, {
    journal: new SqliteJournal(file),
    storeOptions: { maxHistoryEvents: MAX_HISTORY_EVENTS },
    eventTtlMs: EVENT_TTL_MS,
  });
  for (let n = 0; n < FLEET; n++) await plane.beginApply(aVm(`fleet-${n}`, { runStrategy: 'Always' }));
  await plane.settle();
  return { plane, file };
}

async function runRound(plane: VmPlane, round: number): Promise<void> {
  const created = Array.from({ length: CHURN }, (_, index) => `r${round}-${index}`);
  for (const name of created) {
    await plane.beginApply(aClaim(name));
    await plane.beginApply(aVmOnClaim(name, name, { runStrategy: 'Always' }));
  }
  await plane.settle();
  const migrations = [`fleet-${round % MIGRATED}`, created[0]!].map((vmiName) => ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name: `${vmiName}-${round}` },
    spec: { vmiName },
  }));
  for (const migration of migrations) await plane.beginApply(migration);
  await plane.settle();
  for (const { kind, metadata } of migrations) {
    // A busy machine may not be done with the streams between the agents when the plane is at rest.
    for (let tries = 0; tries < MIGRATION_TRIES; tries++) {
      if ((await plane.get(kind, metadata.name)).status.phase === 'Succeeded') break;
      await plane.advance(1000);
    }
    assert.equal((await plane.get(kind, metadata.name)).status.phase, 'Succeeded', metadata.name);
  }
  assert.equal(await plane.runVerb('restart', `fleet-${round % FLEET}`), '202');
  await plane.apply(aSnapshot(`s-${round}`, created[1]!));
  await plane.advance(2 * MINUTE_MS);
  assert.equal((await plane.get('VirtualMachineSnapshot', `s-${round}`)).status.readyToUse, true);
  await plane.delete('VirtualMachineSnapshot', `s-${round}`);
  for (const name of created) {
    await plane.beginDelete('VirtualMachine', name);
    await plane.beginDelete('PersistentVolumeClaim', name);
  }
  await plane.advance(MINUTE_MS);
  clearRecords(plane);
}

/** Clears what the simulated nodes record for tests. */
function clearRecords({ starts, server, nodes }: VmPlane): void {
  for (const records of [starts, server.lists.calls]) records.length = 0;
  for (const { disks } of nodes) for (const names of [disks.createdVolumes, disks.removedLeftovers]) names.length = 0;
}

async function takeSample(plane: VmPlane, file: string, collectGarbage: () => void): Promise<Sample> {
  const { api, store } = plane.server;
  const { registry } = api.core;
  const objects = registry.collections().map(({ collection }) => [`objects ${collection}`, store.count(collection)]);
  const metrics = (await plane.call('GET', '/metrics')).text.split('\n').length;
  const { nodes, shared, clock } = plane;
  collectGarbage();
  return {
    ...Object.fromEntries(objects),
    metrics,
    guests: nodes.flatMap(({ host }) => [...host.guests()]).length,
    volumes: nodes.reduce((sum, { disks }) => sum + disks.own.contents.size, shared.contents.size),
    snapshots: nodes.reduce((sum, { disks }) => sum + disks.own.snapshots.size, shared.snapshots.size),
    timers: clock.pendingTimers,
    file: statSync(file).size + statSync(`${file}-wal`).size,
    heap: process.memoryUsage().heapUsed,
  };
}

function exposeGarbageCollector(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}

test('nothing grows in hours of churn at a constant fleet', { timeout: LIMIT_MS }, async (t) => {
  const { plane, file } = await startFleet(t);
  const collectGarbage = exposeGarbageCollector();
  const samples: Sample[] = [];
  for (let round = 0; round < WARM_UP_ROUNDS + 2 * PERIOD_ROUNDS; round++) {
    await runRound(plane, round);
    if (round >= WARM_UP_ROUNDS) samples.push(await takeSample(plane, file, collectGarbage));
  }
  assert.equal(samples.at(-1)!['objects virtualmachines.kubevirt.io'], FLEET, 'the test counts objects');
  assert.deepEqual(findGrowth(samples, { tolerance: TOLERANCE, noisy: new Set(['heap']) }), []);
});
