/**
 * Migration steps that fail, with a simulated QEMU. Real migrations are in test/e2e/hypervisor-qemu-migration.test.ts.
 */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import type { OutgoingMigration } from '#node/hypervisor/migration.ts';
import { ownUserAccess } from '#node/hypervisor/qemu/process/file-access.ts';
import { aDefinition } from '#node/hypervisor/testing/a-definition.ts';
import { mirrorName } from '#node/hypervisor/qemu/arguments/block-nodes.ts';
import { DomainDir } from '#node/hypervisor/qemu/record/domain-dir.ts';
import { GuestMigration } from '#node/hypervisor/qemu/migration/guest-migration.ts';
import type { MigrationRecord } from '#node/hypervisor/qemu/record/domain-record.ts';
import { openScriptedMonitor, type Command } from '#node/hypervisor/qemu/testing/scripted-monitor.ts';
import { SimulatedBlocks } from '#node/hypervisor/qemu/testing/simulated-blocks.ts';
import { waitWithClock } from '#node/hypervisor/qemu/testing/wait-with-clock.ts';

const DISKS = [{ deviceId: 'disk-a', bytes: 4096, overlay: false }];
const base = { uid: 'u', peer: 'other', disks: DISKS, goesOn: true };
const SENDING: MigrationRecord = { ...base, role: 'source', step: 'sending' };
const MIGRATED: MigrationRecord = { ...base, role: 'source', step: 'migrated' };
const STORED: MigrationRecord = { ...base, role: 'target', step: 'stored' };
const OUTGOING: OutgoingMigration = {
  ...{ uid: 'u', peer: 'other', disks: DISKS, bytesPerSecond: 0, autoConverge: false },
  endpoint: { memory: 'tcp:10.0.0.1:49152', disks: 'tcp:10.0.0.1:49153' },
};
const { signal } = new AbortController();

class SimulatedQemu extends SimulatedBlocks {
  status = 'running';
  migrate: { status?: string; 'error-desc'?: string } = {};
  /** Commands that change something, and written records, in order. */
  readonly done: string[] = [];

  override answer(command: Command): unknown {
    const { execute, arguments: args = {} } = command;
    if (!execute.startsWith('query-') && execute !== 'qmp_capabilities') this.done.push(execute);
    switch (execute) {
      case 'query-status':
        return { status: this.status };
      case 'query-migrate':
        return this.migrate;
      case 'object-del':
        return new Error('not found');
      case 'blockdev-mirror':
        this.setJob(args['job-id'], 'ready');
        return {};
      case 'block-job-cancel':
        this.setJob(args['device'], 'concluded');
        return {};
      case 'migrate':
        this.migrate = { status: 'active' };
        return {};
      case 'migrate_cancel':
        this.migrate = { status: 'cancelled' };
        if (this.status === 'finish-migrate') this.status = 'running';
        return {};
      case 'migrate-continue':
        this.migrate = { status: 'completed' };
        this.status = 'postmigrate';
        return {};
      case 'cont':
        if (this.status === 'finish-migrate') return new Error('Migration is not finalized yet');
        this.status = 'running';
        return {};
      default:
        return super.answer(command);
    }
  }
}

interface Scene {
  readonly qemu: SimulatedQemu;
  readonly migration: GuestMigration;
  readonly state: { record: MigrationRecord | undefined; unwritable: boolean; changing: boolean };
  /** The recorded step. */
  step(): string | undefined;
  event(name: string): void;
  until(isSo: () => boolean): Promise<void>;
}

async function scene(record: MigrationRecord | undefined, run: (scene: Scene) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'selfsame-move-'));
  const [clock, qemu, dir] = [new FakeClock(), new SimulatedQemu(), new DomainDir(root, 'a-uid')];
  await mkdir(dir.run, { recursive: true });
  const qmp = await openScriptedMonitor(clock, (command) => qemu.answer(command));
  const state = { record, unwritable: false, changing: false };
  const migration = new GuestMigration({
    ...{ clock, dir, user: undefined },
    files: ownUserAccess,
    definition: () => aDefinition(),
    record: () => state.record,
    write: async (next) => {
      state.record = next;
      if (state.unwritable) throw new Error('no space left');
      qemu.done.push(`write ${next.step}`);
    },
    setInMemory: (next) => void (state.record = next),
    withQmp: (_verb, work) => work(qmp),
    hasEnded: () => qemu.status === 'ended',
    isChanging: () => state.changing,
    refresh: async () => undefined,
    quit: async () => void qemu.done.push('quit'),
  });
  try {
    const event = (name: string) => migration.onEvent({ name, data: {} });
    await run({ qemu, migration, state, step: () => state.record?.step, event, until: waitWithClock(clock) });
  } finally {
    qmp.close();
    await rm(root, { recursive: true });
  }
}

test('refuses to send a guest that stays paused since an aborted migration', () =>
  scene({ ...SENDING, step: 'aborted', goesOn: false }, async ({ qemu, migration, step }) => {
    qemu.status = 'postmigrate';
    await assert.rejects(migration.send(OUTGOING, { signal }), /resume it before the next migration/);
    assert.deepEqual([qemu.done, step()], [[], 'aborted']);
  }));

const takenBack: Record<string, { migrate: string | undefined; status: string; cancels: boolean; resumes: boolean }> = {
  'before anything was sent': { migrate: undefined, status: 'running', cancels: false, resumes: false },
  'while connecting': { migrate: 'setup', status: 'running', cancels: true, resumes: false },
  'while memory is sent': { migrate: 'active', status: 'running', cancels: true, resumes: false },
  'while paused for the switchover': {
    migrate: 'pre-switchover',
    status: 'finish-migrate',
    cancels: true,
    resumes: false,
  },
  'while the last part is sent': { migrate: 'device', status: 'finish-migrate', cancels: true, resumes: false },
  'after everything was sent': { migrate: 'completed', status: 'postmigrate', cancels: false, resumes: true },
  'after a failure': { migrate: 'failed', status: 'running', cancels: false, resumes: false },
  'after a failure of the switchover': { migrate: 'failed', status: 'postmigrate', cancels: false, resumes: true },
  'after a cancellation': { migrate: 'cancelled', status: 'running', cancels: false, resumes: false },
};

for (const [moment, { migrate, status, cancels, resumes }] of Object.entries(takenBack)) {
  test(`aborts a migration ${moment}`, () =>
    scene(SENDING, async ({ qemu, migration, step }) => {
      Object.assign(qemu, { status, migrate: migrate === undefined ? {} : { status: migrate } });
      const name = mirrorName('disk-a');
      qemu.jobs.set(name, { id: name, status: 'running' });
      qemu.nodes.add(name).add('fmt-a');

      await migration.abort();

      assert.deepEqual([qemu.done.includes('migrate_cancel'), qemu.done.includes('cont')], [cancels, resumes]);
      assert.deepEqual([qemu.status, [...qemu.jobs], [...qemu.nodes], step()], ['running', [], ['fmt-a'], 'aborted']);
    }));
}

test('waits until QEMU has finished a migration that is complete, and resumes the guest then', () =>
  scene(SENDING, async ({ qemu, migration, event, until }) => {
    Object.assign(qemu, { status: 'finish-migrate', migrate: { status: 'completed' } });
    const aborting = migration.abort();
    await until(() => qemu.done.includes('object-del'));
    assert.ok(!qemu.done.includes('cont'));
    qemu.status = 'postmigrate';
    event('MIGRATION');
    await aborting;
    assert.equal(qemu.status, 'running');
  }));

test('keeps a guest paused that the user has paused', () =>
  scene({ ...SENDING, goesOn: false }, async ({ qemu, migration, step }) => {
    Object.assign(qemu, { status: 'postmigrate', migrate: { status: 'completed' } });
    await migration.abort();
    assert.deepEqual([qemu.done.includes('cont'), step()], [false, 'aborted']);
  }));

test('only records the abort if the guest has ended', () =>
  scene(SENDING, async ({ qemu, migration, step }) => {
    qemu.status = 'ended';
    await migration.abort();
    assert.deepEqual([qemu.done, step()], [['write aborted'], 'aborted']);
  }));

test('refuses to abort after the guest has migrated', () =>
  scene(MIGRATED, async ({ qemu, migration }) => {
    await assert.rejects(migration.abort(), /its migration is in step migrated as source; expected sending or aborted/);
    assert.deepEqual(qemu.done, []);
  }));

test('records the abort before the guest runs if `migrated` may be on disk', () =>
  scene(SENDING, async ({ qemu, migration, state, step }) => {
    qemu.jobs.set(mirrorName('disk-a'), { id: mirrorName('disk-a'), status: 'ready' });
    await migration.switchOver();
    qemu.done.length = 0;
    state.unwritable = true;
    await assert.rejects(migration.recordMigrated(), /no space left/);
    assert.equal(step(), 'sending');
    await assert.rejects(migration.abort(), /no space left/);
    assert.deepEqual(qemu.done, [], 'the guest does not run before');

    state.unwritable = false;
    await migration.abort();

    assert.deepEqual([qemu.done[0], qemu.done.at(-1), step()], ['write aborted', 'cont', 'aborted']);
  }));

test('refuses to record a migration that this process has not sent', () =>
  scene(SENDING, async ({ qemu, migration }) => {
    Object.assign(qemu, { status: 'postmigrate', migrate: { status: 'completed' } });
    await assert.rejects(migration.recordMigrated(), /this process has not sent everything/);
    assert.deepEqual(qemu.done, []);
  }));

test('reports why a guest cannot be sent, and records nothing', async () => {
  for (const [record, changing, want] of [
    [SENDING, false, /the guest is migrating to node "other"/],
    [STORED, false, /has not arrived yet/],
    [undefined, true, /being copied/],
  ] as const) {
    await scene(record, async ({ qemu, migration, state }) => {
      state.changing = changing;
      await assert.rejects(migration.send(OUTGOING, { signal }), want);
      assert.deepEqual([qemu.done, state.record], [[], record]);
    });
  }
});

test('records the step, sends disks before memory, and switches over', () =>
  scene(undefined, async ({ qemu, migration, step, event, until }) => {
    const sending = migration.send(OUTGOING, { signal });
    await until(() => qemu.done.includes('migrate'));
    Object.assign(qemu, { status: 'finish-migrate', migrate: { status: 'pre-switchover' } });
    event('MIGRATION');
    await sending;
    const startCommands = ['write sending', 'migrate-set-capabilities', 'migrate-set-parameters'];
    assert.deepEqual(qemu.done, [...startCommands, 'blockdev-add', 'blockdev-mirror', 'migrate']);
    qemu.done.length = 0;

    assert.deepEqual(await migration.switchOver(), {});

    assert.deepEqual(qemu.done, ['block-job-cancel', 'job-dismiss', 'blockdev-del', 'migrate-continue']);
    await migration.recordMigrated();
    await migration.leave();
    assert.deepEqual([qemu.done.slice(-3), step()], [['write migrated', 'quit', 'write left'], 'left']);
  }));

test('reports QEMU’s error', () =>
  scene(undefined, async ({ qemu, migration, step, until }) => {
    const sending = assert.rejects(migration.send(OUTGOING, { signal }), /the migration failed: no route to host/);
    await until(() => qemu.done.includes('migrate'));
    qemu.migrate = { status: 'failed', 'error-desc': 'no route to host' };
    await until(watchSettled(sending));
    await sending;
    assert.equal(step(), 'sending');
  }));

test('fails on a disk error, also while memory is sent', () =>
  scene(undefined, async ({ qemu, migration, until }) => {
    const sending = assert.rejects(
      migration.send(OUTGOING, { signal }),
      /the transfer of disk "disk-a" failed: Input\/output/,
    );
    await until(() => qemu.done.includes('migrate'));
    const name = mirrorName('disk-a');
    qemu.jobs.set(name, { id: name, status: 'concluded', error: 'Input/output error' });
    await until(watchSettled(sending));
    await sending;
  }));

test('refuses the switchover while a disk is not sent completely', () =>
  scene(SENDING, async ({ qemu, migration }) => {
    const name = mirrorName('disk-a');
    qemu.jobs.set(name, { id: name, status: 'running' });
    await assert.rejects(migration.switchOver(), /a disk has not been sent completely/);
    qemu.jobs.clear();
    await assert.rejects(migration.switchOver(), /QEMU has no job for it/);
    assert.deepEqual(qemu.done, []);
  }));

test('continues the guest only after `committed` is recorded', () =>
  scene(STORED, async ({ qemu, migration, state, step }) => {
    state.unwritable = true;
    await assert.rejects(migration.commit(), /no space left/);
    assert.deepEqual(qemu.done, []);
    state.unwritable = false;
    await migration.commit();
    assert.deepEqual([qemu.done, step()], [['write committed', 'cont', 'object-del', 'write arrived'], 'arrived']);
    await migration.commit();
    assert.equal(qemu.done.length, 4);
  }));

test('completes decided steps after a restart, and nothing else', async () => {
  const cases: [MigrationRecord | undefined, status: string, want: string[]][] = [
    [undefined, 'running', []],
    [SENDING, 'postmigrate', []],
    [MIGRATED, 'postmigrate', []],
    [STORED, 'paused', []],
    [{ ...base, role: 'target', step: 'committed' }, 'paused', ['cont', 'object-del', 'write arrived']],
    [{ ...base, role: 'target', step: 'committed', goesOn: false }, 'paused', ['object-del', 'write arrived']],
    [{ ...base, role: 'source', step: 'aborted' }, 'postmigrate', ['cont']],
    [{ ...base, role: 'source', step: 'aborted' }, 'paused', []],
    [{ ...base, role: 'source', step: 'aborted', goesOn: false }, 'postmigrate', []],
  ];
  for (const [record, status, want] of cases) {
    await scene(record, async ({ qemu, migration }) => {
      qemu.status = status;
      await migration.reconcile();
      assert.deepEqual(qemu.done, want, JSON.stringify(record));
    });
  }
});

/** Returns a function that reports whether the work has settled. */
function watchSettled(work: Promise<unknown>): () => boolean {
  let over = false;
  const end = () => void (over = true);
  work.then(end, end);
  return () => over;
}
