/** Migrations that are aborted or interrupted: the statements of migration.ts about them. */
import assert from 'node:assert/strict';
import { driveAddress } from '#node/hardware/drive-address.ts';
import type { PluggableDevice } from '#node/hardware/domain-definition.ts';
import { HypervisorError, type Hypervisor } from '#node/hypervisor/hypervisor.ts';
import {
  beginMove,
  moveTo,
  POINTS,
  stepsOf,
  migrationStatusOf,
  type Move,
  type Point,
} from '#node/hypervisor/testing/move.ts';
import {
  hasEnded,
  SLOW_BYTES_PER_SECOND,
  startGuest,
  stateOf,
  waitUntil,
  type Cases,
  type ConformanceScene,
} from '#node/hypervisor/testing/scene.ts';

const BEFORE_MIGRATED: readonly Point[] = ['received', 'sent', 'switched', 'stored'];

export const abortCases: Cases = {
  ...casesAt(BEFORE_MIGRATED, 'aborts a migration at point', async (scene, point) => {
    const move = await beginMove(scene);
    await moveTo(move, point);
    await assertAborted(move, { hasBegun: point !== 'received' });
  }),

  ...casesAt(BEFORE_MIGRATED, 'aborts a migration after a restart at point', async (scene, point) => {
    const move = await beginMove(scene);
    await moveTo(move, point);
    move.source = await reopenSource(scene);
    await assertAborted(move, { hasBegun: point !== 'received' });
  }),

  ...casesAt(['migrated', 'committed', 'left'], 'refuses to abort a migration at point', async (scene, point) => {
    const move = await beginMove(scene);
    await moveTo(move, point);
    const before = migrationStatusOf(move.source, move.id);
    await assert.rejects(move.source.abortMigration(move.id), HypervisorError);
    assert.deepEqual(migrationStatusOf(move.source, move.id), before);
    assert.notEqual(stateOf(move.source, move.id), 'running');
  }),

  ...casesAt(POINTS, 'finds both sides of a migration again at point', async (scene, point) => {
    const move = await beginMove(scene);
    await moveTo(move, point);
    const before = [migrationStatusOf(move.source, move.id), migrationStatusOf(move.target, move.id)];

    move.source = await reopenSource(scene);
    move.target = await reopenTarget(scene);

    assert.deepEqual([migrationStatusOf(move.source, move.id), migrationStatusOf(move.target, move.id)], before);
  }),

  ...casesAt(
    ['migrated', 'committed'],
    'completes a migration after a restart of both sides at point',
    async (scene, point) => {
      const move = await beginMove(scene);
      await moveTo(move, point);
      move.source = await reopenSource(scene);
      move.target = await reopenTarget(scene);

      await move.target.commit(move.id);
      await move.source.leave(move.id);

      assert.equal(stateOf(move.target, move.id), 'running');
      assert.deepEqual(move.source.get(move.id)?.current, { state: 'ended', how: 'migrated' });
      assert.deepEqual(stepsOf(move), ['left', 'arrived']);
    },
  ),

  'ignores an abort without a migration': async (scene) => {
    const id = await startGuest(scene);
    await scene.hypervisor.abortMigration(id);
    assert.deepEqual(scene.hypervisor.get(id)?.current, { state: 'running' });
  },

  'keeps a guest paused that the user has paused': async (scene) => {
    const move = await beginMove(scene, { paused: true });
    await moveTo(move, 'switched');
    await move.source.abortMigration(move.id);
    assert.deepEqual(move.source.get(move.id)?.current, { state: 'paused' });
    await move.source.resume(move.id);
    assert.equal(stateOf(move.source, move.id), 'running');
  },

  'moves a guest after an aborted migration': async (scene) => {
    const first = await beginMove(scene);
    await moveTo(first, 'stored');
    await first.source.abortMigration(first.id);
    await clearTarget(first);

    const move = await beginMove(scene, { definition: first.definition });
    await moveTo(move, 'left');

    assert.equal(stateOf(move.target, move.id), 'running');
    assert.equal(move.target.get(move.id)?.migration?.uid, move.uid);
  },

  'stops sending when the signal aborts': async (scene) => {
    const { move, sending, abort } = await startSlowSend(scene);
    abort.abort(new Error('enough'));
    await assert.rejects(sending);
    await assertAborted(move, { hasBegun: true });
  },

  'records the step sending before anything is sent': async (scene) => {
    const { move, sending } = await startSlowSend(scene);
    sending.catch(() => undefined);
    const next = await reopenSource(scene);
    assert.deepEqual(next.get(move.id)?.migration?.step, 'sending');
    move.source = next;
    await assertAborted(move, { hasBegun: true });
  },

  'fails to send to a target that dies, and the guest continues': async (scene) => {
    const { move, sending } = await startSlowSend(scene);
    const rejected = assert.rejects(sending);
    await scene.killAtSecond(move.id);
    await rejected;
    await waitUntil(move.target, move.id, hasEnded);
    await move.source.abortMigration(move.id);
    assert.equal(stateOf(move.source, move.id), 'running');
    await move.target.remove(move.id);
  },

  'fails to send a guest that dies': async (scene) => {
    const { move, sending } = await startSlowSend(scene);
    const rejected = assert.rejects(sending);
    await scene.killGuest(move.id);
    await rejected;
    const { current } = await waitUntil(move.source, move.id, hasEnded);
    assert.equal(current.state === 'ended' && current.how, 'crashed');
    await move.source.abortMigration(move.id);
    assert.equal(stateOf(move.source, move.id), 'ended');
  },

  'fails to send to a target that no longer waits': async (scene) => {
    const move = await beginMove(scene);
    await clearTarget(move);
    await assert.rejects(moveTo(move, 'sent'));
    await move.source.abortMigration(move.id);
    assert.equal(stateOf(move.source, move.id), 'running');
  },

  'refuses changes of a guest while it is sent': async (scene) => {
    const { move, sending } = await startSlowSend(scene);
    const { source, id } = move;
    const rejected = assert.rejects(sending);
    await assertRefusesChanges(scene, source, id);
    assert.equal(source.get(id)?.migration?.step, 'sending');
    await source.abortMigration(id);
    await rejected;
    await source.plug(id, await aScsiDisk(scene));
  },

  'refuses changes of a guest that has migrated or has not arrived': async (scene) => {
    const move = await beginMove(scene);
    await assertRefusesChanges(scene, move.target, move.id);
    await moveTo(move, 'migrated');
    await assertRefusesChanges(scene, move.source, move.id);
    await assertRefusesChanges(scene, move.target, move.id);
    assert.deepEqual([stateOf(move.source, move.id), stateOf(move.target, move.id)], ['paused', 'incoming']);
  },

  'switches off a guest that is being sent': async (scene) => {
    const { move, sending } = await startSlowSend(scene);
    const rejected = assert.rejects(sending);
    await move.source.destroy(move.id);
    await rejected;
    const current = move.source.get(move.id)?.current;
    assert.equal(current?.state === 'ended' && current.how, 'destroyed');
    await move.source.remove(move.id);
  },

  'reports the migration of an incoming guest that died': async (scene) => {
    const move = await beginMove(scene);
    await moveTo(move, 'stored');
    await scene.killAtSecond(move.id);
    const { current, migration } = await waitUntil(move.target, move.id, hasEnded);
    assert.equal(current.state === 'ended' && current.how, 'crashed');
    assert.equal(migration?.step, 'stored');
  },

  'refuses to commit before the guest is stored': async (scene) => {
    const move = await beginMove(scene);
    await assert.rejects(move.target.commit(move.id), HypervisorError);
    await moveTo(move, 'switched');
    await assert.rejects(move.target.commit(move.id), HypervisorError);
    assert.equal(stateOf(move.target, move.id), 'incoming');
  },

  'refuses to leave before the guest has migrated': async (scene) => {
    const move = await beginMove(scene);
    await assert.rejects(move.source.leave(move.id), HypervisorError);
    await moveTo(move, 'stored');
    await assert.rejects(move.source.leave(move.id), HypervisorError);
    await assertAborted(move, { hasBegun: true });
  },

  'refuses to record an aborted migration as migrated': async (scene) => {
    const move = await beginMove(scene);
    await moveTo(move, 'stored');
    await move.source.abortMigration(move.id);
    await assert.rejects(move.source.recordMigrated(move.id), HypervisorError);
    assert.equal(move.source.get(move.id)?.migration?.step, 'aborted');
  },
};

function casesAt(
  points: readonly Point[],
  sentence: string,
  run: (scene: ConformanceScene, point: Point) => Promise<void>,
): Cases {
  return Object.fromEntries(points.map((point) => [`${sentence} ${point}`, (scene) => run(scene, point)]));
}

/** Aborts twice, asserts that the guest continues at the source, and removes it at the target. */
async function assertAborted(move: Move, { hasBegun }: { hasBegun: boolean }): Promise<void> {
  const { source, target, id } = move;
  await source.abortMigration(id);
  await source.abortMigration(id);
  assert.deepEqual(source.get(id)?.current, { state: 'running' });
  assert.equal(source.get(id)?.migration?.step, hasBegun ? 'aborted' : undefined);
  // A waiting QEMU may exit by itself when the source disconnects.
  assert.ok(['incoming', 'ended'].includes(stateOf(target, id)));
  await clearTarget(move);
  assert.equal(stateOf(target, id), 'absent');
  await source.pause(id);
  await source.resume(id);
  assert.equal(stateOf(source, id), 'running');
}

async function clearTarget({ target, id }: Move): Promise<void> {
  await target.destroy(id);
  await target.remove(id);
}

/** Starts a send that does not finish during the case. */
async function startSlowSend(scene: ConformanceScene) {
  const source = await scene.reopenSlow();
  await source.adopt();
  const move = await beginMove({ ...scene, hypervisor: source }, { bytesPerSecond: SLOW_BYTES_PER_SECOND });
  const abort = new AbortController();
  const started = Promise.withResolvers<void>();
  const sending = source.send(move.id, move.outgoing, { signal: abort.signal, onProgress: () => started.resolve() });
  await Promise.race([started.promise, sending]);
  return { move, sending, abort };
}

async function reopenSource(scene: ConformanceScene): Promise<Hypervisor> {
  const next = await scene.reopen();
  await next.adopt();
  return next;
}

async function reopenTarget(scene: ConformanceScene): Promise<Hypervisor> {
  const next = await scene.reopenSecond();
  await next.adopt();
  return next;
}

async function assertRefusesChanges(scene: ConformanceScene, hypervisor: Hypervisor, id: string): Promise<void> {
  const disk = await aScsiDisk(scene);
  await assert.rejects(hypervisor.plug(id, disk), HypervisorError);
  await assert.rejects(hypervisor.pause(id), HypervisorError);
  await assert.rejects(hypervisor.resume(id), HypervisorError);
  await assert.rejects(hypervisor.reset(id), HypervisorError);
  assert.ok(hypervisor.inspect(id)?.definition.devices.every((device) => device.id !== disk.id));
}

/** A disk at unit 7, which is free in every guest of a scene. */
async function aScsiDisk(scene: ConformanceScene): Promise<PluggableDevice> {
  return {
    type: 'disk',
    id: 'disk-late',
    name: 'late',
    media: 'disk',
    bus: 'scsi',
    source: { path: await scene.diskFile(), format: 'raw' },
    readonly: false,
    cache: 'writeback',
    address: driveAddress(7),
  };
}
