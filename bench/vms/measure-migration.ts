/**
 * Measures the migration of a VM with EFI and a TPM with persistent state, compared with the same guest migrated
 * manually from one QEMU to another. The plane's time begins with the POST of the migration and ends when a watch shows
 * that the guest runs at the target. It includes scheduling, a new claim for the state, two records on disk and all
 * writes.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { MIGRATION_UID_LABEL } from '#api/names.ts';
import type { Client } from '#client/client.ts';
import { isTrue } from '#kube/conditions.ts';
import { PODS } from '#kube/core-kinds.ts';
import type { Row } from '../report.ts';
import { median } from '../statistics.ts';
import { NAMESPACE } from './manifests.ts';
import { ManualGuest, waitUntilBooted, type MigrationTimes } from './manual-migration.ts';
import type { VmBench } from './vm-bench.ts';

const MAX_MORE_MS = 300;
const MAX_DOWNTIME_RATIO = 1.2;
const MAX_MORE_DOWNTIME_MS = 20;
const EXAMPLE = new URL('../../examples/vm-tpm.yaml', import.meta.url);
const TIMEOUT_MS = 60_000;

interface PlaneMigration extends MigrationTimes {
  readonly concludedMs: number;
}

export async function measureMigration(bench: VmBench, rounds: number): Promise<Row[]> {
  await bench.startPlane({ nodes: 2, hypervisor: 'qemu' });
  const client = await bench.client();
  const vm = parse(readFileSync(EXAMPLE, 'utf8')) as VirtualMachine;
  const { name } = await bootVm(bench, client, vm);
  const guestDir = join(bench.dataDir, 'nodes', 'node-1', 'guest');
  const kernel = { kernelPath: join(guestDir, 'vmlinuz'), initrdPath: join(guestDir, 'initrd.gz') };
  const manualGuest = new ManualGuest(bench.dir, kernel);
  await manualGuest.boot();
  try {
    // The first ones fill caches and warm up V8.
    for (let warm = 0; warm < 2; warm++) {
      await migrateVm(client, name);
      await manualGuest.migrate();
    }
    const [planeMigrations, manualMigrations]: [PlaneMigration[], MigrationTimes[]] = [[], []];
    for (let round = 0; round < rounds; round++) {
      const turns = [
        async () => void planeMigrations.push(await migrateVm(client, name)),
        async () => void manualMigrations.push(await manualGuest.migrate()),
      ];
      for (const turn of round % 2 === 0 ? turns : turns.toReversed()) await turn();
    }
    return rowsOf(planeMigrations, manualMigrations);
  } finally {
    await manualGuest.stop();
    await bench.stopPlane();
  }
}

function rowsOf(planeMigrations: readonly PlaneMigration[], manualMigrations: readonly MigrationTimes[]): Row[] {
  const total = {
    engine: median(planeMigrations.map(({ totalMs }) => totalMs)),
    floor: median(manualMigrations.map(({ totalMs }) => totalMs)),
  };
  const downtime = {
    engine: median(planeMigrations.map(({ downtimeMs }) => downtimeMs)),
    floor: median(manualMigrations.map(({ downtimeMs }) => downtimeMs)),
  };
  const concludedMs = median(planeMigrations.map(({ concludedMs }) => concludedMs));
  return [
    {
      what: 'migration until the guest resumes',
      unit: 'ms',
      ...total,
      bar: { moreThanFloor: MAX_MORE_MS },
      note: `${(total.engine - total.floor).toFixed(0)} ms more than manually; reported as Succeeded after ${concludedMs.toFixed(0)} ms; median of ${planeMigrations.length}`,
    },
    {
      what: '  downtime of the guest',
      unit: 'ms',
      ...downtime,
      bar: { below: MAX_DOWNTIME_RATIO * downtime.floor + MAX_MORE_DOWNTIME_MS },
      note: `at most 1.2 times the manual downtime and ${MAX_MORE_DOWNTIME_MS} ms; ${planeMigrations.map(({ downtimeMs }) => downtimeMs).join(', ')} ms`,
    },
  ];
}

async function bootVm(bench: VmBench, client: Client, vm: VirtualMachine): Promise<{ name: string }> {
  await client.create(VIRTUAL_MACHINES, { ...vm, metadata: { ...vm.metadata, namespace: NAMESPACE } });
  const deadline = performance.now() + TIMEOUT_MS;
  for (;;) {
    const found = ['node-1', 'node-2'].flatMap((node) => domainsOf(join(bench.dataDir, 'nodes', node, 'domains')));
    if (found[0] !== undefined) {
      await waitUntilBooted(join(found[0], 'console.log'));
      return { name: vm.metadata.name! };
    }
    if (performance.now() > deadline) throw new Error('Cannot measure migrations: the VM does not start');
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

function domainsOf(dir: string): string[] {
  try {
    return readdirSync(dir).map((id) => join(dir, id));
  } catch {
    return [];
  }
}

/** Runs one migration, with watches that are opened before it begins. */
export async function migrateVm(client: Client, vmiName: string): Promise<PlaneMigration> {
  const controller = new AbortController();
  const { signal } = controller;
  const from = { at: 0 };
  const pods = await client.list(PODS, { namespace: NAMESPACE, limit: 1 });
  const migrations = await client.list(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, { namespace: NAMESPACE, limit: 1 });
  const watching = { namespace: NAMESPACE, timeoutSeconds: 120, signal };
  const podEvents = client.watch(PODS, { ...watching, resourceVersion: pods.metadata.resourceVersion });
  const ownEvents = client.watch(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, {
    ...watching,
    resourceVersion: migrations.metadata.resourceVersion,
  });
  const created = client
    .create(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstanceMigration',
      metadata: { generateName: 'bench-', namespace: NAMESPACE },
      spec: { vmiName },
    })
    .catch((error: unknown) => {
      controller.abort(error);
      throw error;
    });
  from.at = performance.now();
  const { metadata } = await created;
  const waitUntilResumed = async () => {
    for await (const { object } of podEvents) {
      const isTarget = object.metadata.labels?.[MIGRATION_UID_LABEL] === metadata.uid;
      if (isTarget && isTrue(object.status?.conditions, 'Ready')) return performance.now() - from.at;
    }
    throw new Error('Cannot measure a migration: the watch of pods ended');
  };
  const concludedMs = async () => {
    for await (const { object } of ownEvents) {
      if (object.metadata.uid !== metadata.uid) continue;
      const { phase, migrationProgress, message } = object.status ?? {};
      if (phase === 'Failed') throw new Error(`A migration failed: ${message}`);
      const downtimeMs = migrationProgress?.downtimeMs;
      if (phase === 'Succeeded' && downtimeMs !== undefined)
        return { concludedMs: performance.now() - from.at, downtimeMs };
    }
    throw new Error('Cannot measure a migration: the watch of migrations ended');
  };
  try {
    const [totalMs, end] = await Promise.all([waitUntilResumed(), concludedMs()]);
    // Time to remove the source before the next migration.
    await new Promise((resolve) => setTimeout(resolve, 1000));
    return { totalMs, ...end };
  } finally {
    controller.abort();
  }
}
