import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { aMigration } from '#api/validation/testing/valid-objects.ts';
import {
  resultLine,
  followMigration,
  listMigrations,
  progressLine,
  type ListedMigration,
} from '#cli/commands/migrate/migrations.ts';
import { notFound } from '#kube/api-error.ts';
import { StatusOutput } from '#lib/terminal/status-output.ts';

const MIB = 1024 ** 2;
const TYPE = { group: 'kubevirt.io', plural: 'virtualmachineinstancemigrations' };
const migration = (patch: object) => aMigration(patch) as ListedMigration;
const at = (status: object | undefined) => migration(status === undefined ? {} : { status });
const copyProgress = (done: number) => ({
  phase: 'Running',
  migrationProgress: {
    migrationUid: 'm',
    phase: 'Copying',
    dataTotalBytes: 512 * MIB,
    dataProcessedBytes: done * MIB,
    bytesPerSecond: 64 * MIB,
  },
});

const lines: Record<string, object | undefined> = {
  'migration m1: Pending': undefined,
  'migration m1: Pending (waiting for a place: 5 migrations are under way)': {
    phase: 'Pending',
    message: 'waiting for a place: 5 migrations are under way',
  },
  'migration m1: TargetReady': { phase: 'TargetReady' },
  'migration m1: Running, 128.0 MiB of 512.0 MiB, 64.0 MiB/s, 6s left': copyProgress(128),
};
for (const [want, status] of Object.entries(lines)) test(want, () => assert.equal(progressLine(at(status)), want));

test('renders the result of a migration', () => {
  const migrationState = { sourceNode: 'node-1', targetNode: 'node-2' };
  assert.equal(resultLine('db', at({ migrationState })), 'VM db migrated from node-1 to node-2');
  const status = { migrationState, migrationProgress: { downtimeMs: 35 } };
  assert.equal(resultLine('db', at(status)), 'VM db migrated from node-1 to node-2; downtime 35 ms');
});

test('lists the migrations of a VM, newest first', async () => {
  const items = ['2026-01-01', '2026-01-03', '2026-01-02'].map((day, i) =>
    migration({ metadata: { name: `m${i}`, creationTimestamp: `${day}T00:00:00Z` } }),
  );
  const asked: string[] = [];
  const api = {
    namespace: 'golden',
    get: async (path: string) => {
      asked.push(path);
      return { items: [...items, migration({ metadata: { name: 'x' }, spec: { vmiName: 'web' } })], metadata: {} };
    },
  };
  const found = await listMigrations(api, 'db', () => {});
  assert.deepEqual(
    found.map(({ metadata }) => metadata.name),
    ['m1', 'm2', 'm0'],
  );
  await listMigrations(api, 'x'.repeat(64), () => {});
  const base = '/apis/kubevirt.io/v1/namespaces/golden/virtualmachineinstancemigrations?limit=500';
  // A name that is too long for a label is found among all migrations.
  assert.deepEqual(asked, [`${base}&labelSelector=kubevirt.io%2Fvmi-name%3Ddb`, base]);
});

describe('following a migration', () => {
  /** Returns the states one by one, half a second apart; the last one stays. */
  async function follow(...states: (object | 'gone')[]) {
    let [polls, now] = [0, 0];
    const reported: string[] = [];
    const clock = {
      now: () => now,
      elapsed: () => now,
      after(ms: number, fn: () => void) {
        now += ms;
        setImmediate(fn);
        return () => {};
      },
    };
    const get = async () => {
      const state = states[Math.min(polls++, states.length - 1)]!;
      if (state === 'gone') throw notFound(TYPE, 'm1');
      return at(state);
    };
    const stream = { write: (line: string) => void reported.push(line.trimEnd()) };
    const status = new StatusOutput(stream, { clock, env: {} });
    try {
      return {
        end: (
          await followMigration({ namespace: 'golden', get }, { vm: 'db', name: 'm1' }, { limitMs: 3_600_000, status })
        ).status?.phase,
        reported,
      };
    } catch (error) {
      return { end: String(error), reported };
    }
  }

  test('reports each phase, and progress within a phase at intervals', async () => {
    const running = Array.from({ length: 13 }, (_, i) => copyProgress(i * 32));
    const { end, reported } = await follow({}, { phase: 'Scheduling' }, ...running, { phase: 'Succeeded' });
    assert.equal(end, 'Succeeded');
    assert.deepEqual(reported, [
      'migration m1: Pending',
      'migration m1: Scheduling',
      'migration m1: Running, 0 B of 512.0 MiB, 64.0 MiB/s, 8s left',
      'migration m1: Running, 320.0 MiB of 512.0 MiB, 64.0 MiB/s, 3s left',
    ]);
  });

  test('reports an unchanged state once', async () => {
    const waits = { phase: 'Pending', message: 'no node' };
    const { reported } = await follow(...Array.from({ length: 20 }, () => waits), { phase: 'Succeeded' });
    assert.deepEqual(reported, ['migration m1: Pending (no node)']);
  });

  const ends: Record<string, { state: object | 'gone'; want: string }> = {
    'reports why a migration failed': {
      state: { phase: 'Failed', message: 'm', migrationState: { failureReason: 'the guest is too busy' } },
      want: 'CommandError: Migration m1 of VM db failed: the guest is too busy',
    },
    'reports a migration that failed before it began': {
      state: { phase: 'Failed', message: 'no node fits' },
      want: 'CommandError: Migration m1 of VM db failed: no node fits',
    },
    'reports a migration that was deleted': {
      state: 'gone',
      want: 'CommandError: Migration m1 of VM db was canceled',
    },
  };
  for (const [name, { state, want }] of Object.entries(ends)) {
    test(name, async () => assert.equal((await follow({}, state)).end, want));
  }
});
