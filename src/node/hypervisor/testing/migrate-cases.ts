/** Migrations that succeed: the statements of migration.ts about them. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile, truncate } from 'node:fs/promises';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import type { MovingDisk, SendProgress } from '#node/hypervisor/migration.ts';
import {
  beginMove,
  moveTo,
  SOURCE_NODE,
  stepsOf,
  TARGET_NODE,
  migrationStatusOf,
} from '#node/hypervisor/testing/move.ts';
import { stateOf, type Cases, type ConformanceScene } from '#node/hypervisor/testing/scene.ts';

export const migrateCases: Cases = {
  'waits for an incoming guest': async (scene) => {
    const move = await beginMove(scene);
    const { target, id, uid, source } = move;
    assert.deepEqual(migrationStatusOf(target, id), {
      current: { state: 'incoming' },
      migration: { uid, peer: SOURCE_NODE, role: 'target', step: 'waiting' },
      startedAtMs: source.get(id)?.startedAtMs,
    });
    assert.deepEqual(migrationStatusOf(source, id), {
      ...migrationStatusOf(source, id),
      current: { state: 'running' },
      migration: undefined,
    });
  },

  'moves a guest, and reports each step on both sides': async (scene) => {
    const move = await beginMove(scene);
    const { source, target, id, uid } = move;
    const learned = await source.learn(id);
    const startedAtMs = source.get(id)?.startedAtMs;
    const seen: unknown[] = [];
    for (const point of ['sent', 'switched', 'stored', 'migrated', 'committed', 'left'] as const) {
      await moveTo(move, point);
      seen.push([point, stateOf(source, id), stateOf(target, id), ...stepsOf(move)]);
    }

    assert.deepEqual(seen, [
      ['sent', 'paused', 'incoming', 'sending', 'waiting'],
      ['switched', 'paused', 'incoming', 'sending', 'waiting'],
      ['stored', 'paused', 'incoming', 'sending', 'stored'],
      ['migrated', 'paused', 'incoming', 'migrated', 'stored'],
      ['committed', 'paused', 'running', 'migrated', 'arrived'],
      ['left', 'ended', 'running', 'left', 'arrived'],
    ]);
    const migration = { uid, peer: TARGET_NODE, role: 'source', step: 'left' };
    assert.deepEqual(migrationStatusOf(source, id), {
      current: { state: 'ended', how: 'migrated' },
      migration,
      startedAtMs,
    });
    assert.equal(target.get(id)?.startedAtMs, startedAtMs);
    assert.deepEqual(await target.learn(id), learned);
  },

  'controls a guest completely after it has arrived': async (scene) => {
    const move = await beginMove(scene);
    await moveTo(move, 'left');
    const { source, target, id } = move;

    await source.remove(id);
    assert.equal(stateOf(source, id), 'absent');
    await target.pause(id);
    assert.equal(stateOf(target, id), 'paused');
    await target.resume(id);
    assert.equal(stateOf(target, id), 'running');
    await target.destroy(id);
    await target.remove(id);
    assert.equal(stateOf(target, id), 'absent');
  },

  'reports that a guest is paused for its migration': async (scene) => {
    const move = await beginMove(scene);
    await moveTo(move, 'sent');
    assert.deepEqual(move.source.get(move.id)?.current, { state: 'paused', why: 'migration' });
    await moveTo(move, 'migrated');
    assert.deepEqual(move.source.get(move.id)?.current, { state: 'paused', why: 'migration' });
  },

  'keeps a paused guest paused': async (scene) => {
    const move = await beginMove(scene, { paused: true });
    const { source, target, id } = move;
    await moveTo(move, 'left');
    assert.deepEqual(target.get(id)?.current, { state: 'paused' });
    assert.equal(stateOf(source, id), 'ended');
    await target.resume(id);
    assert.equal(stateOf(target, id), 'running');
  },

  'commits and leaves repeatedly': async (scene) => {
    const move = await beginMove(scene);
    const { source, target, id } = move;
    await moveTo(move, 'committed');
    await target.commit(id);
    await target.pause(id);
    await target.commit(id);
    assert.equal(stateOf(target, id), 'paused');
    await source.leave(id);
    await source.leave(id);
    assert.deepEqual(source.get(id)?.current, { state: 'ended', how: 'migrated' });
    await target.commit(id);
    assert.deepEqual(stepsOf(move), ['left', 'arrived']);
  },

  'moves a guest back to its first hypervisor': async (scene) => {
    const firstMove = await beginMove(scene);
    const { id } = firstMove;
    await moveTo(firstMove, 'left');
    await firstMove.source.remove(id);
    const back: ConformanceScene = { ...scene, hypervisor: firstMove.target, second: async () => firstMove.source };
    // The guest exists, so create does nothing.
    const move = await beginMove(back, { definition: firstMove.definition });

    await moveTo(move, 'left');

    assert.equal(stateOf(firstMove.source, id), 'running');
    assert.deepEqual(firstMove.target.get(id)?.current, { state: 'ended', how: 'migrated' });
  },

  'refuses to receive a domain with an existing id': async (scene) => {
    const { target, definition, uid } = await beginMove(scene);
    const incoming = { uid, peer: SOURCE_NODE, startedAtMs: 0, paused: false, disks: [] };
    const again = target.receive(definition, { ...incoming, transport: { type: 'network', host: '127.0.0.1' } }, {});
    await assert.rejects(again, HypervisorError);
    assert.equal(stateOf(target, definition.id), 'incoming');
  },

  'reports the progress of a send': async (scene) => {
    const move = await beginMove(scene);
    const reports: SendProgress[] = [];
    const { signal } = new AbortController();
    await move.source.send(move.id, move.outgoing, { signal, onProgress: (progress) => reports.push(progress) });
    for (const { processedBytes, remainingBytes, totalBytes, memoryRounds } of reports) {
      for (const number of [processedBytes, remainingBytes, totalBytes, memoryRounds]) {
        assert.ok(Number.isSafeInteger(number) && number >= 0);
      }
    }
    assert.deepEqual(
      reports.map(({ processedBytes }) => processedBytes),
      reports.map(({ processedBytes }) => processedBytes).toSorted((a, b) => a - b),
    );
  },

  'returns the size of each disk that has a medium': async (scene) => {
    const definition = await scene.definitionWithDisks();
    await scene.hypervisor.create(definition, { paused: true });
    const sizes = await scene.hypervisor.diskSizes(definition.id);
    assert.deepEqual([...sizes.keys()].toSorted(), ['disk-first', 'disk-second']);
    for (const [id, path] of paths(definition)) {
      if (existsSync(path)) assert.equal(sizes.get(id), (await readFile(path)).length);
    }
  },

  'moves a guest whose disks both sides can open': async (scene) => {
    const move = await beginMove(scene, { definition: await scene.definitionWithDisks() });
    await moveTo(move, 'left');
    assert.equal(stateOf(move.target, move.id), 'running');
  },

  'moves disks with their guest': async (scene) => {
    const { move, from, to } = await withMovingDisks(scene);
    await moveTo(move, 'left');

    assert.equal(stateOf(move.target, move.id), 'running');
    assert.deepEqual(paths(move.target.inspect(move.id)!.definition), to);
    for (const [id, path] of from) {
      if (existsSync(path)) assert.ok((await readFile(path)).equals(await readFile(to.get(id)!)));
    }
  },

  'keeps the disks at the source if the migration is aborted': async (scene) => {
    const { move, from } = await withMovingDisks(scene);
    await moveTo(move, 'stored');
    await move.source.abortMigration(move.id);

    assert.equal(stateOf(move.source, move.id), 'running');
    assert.deepEqual(paths(move.source.inspect(move.id)!.definition), from);
    await move.target.destroy(move.id);
    // No leftovers of this migration may disturb the next one.
    await move.target.remove(move.id);
    assert.equal(stateOf(move.source, move.id), 'running');
  },
};

async function withMovingDisks(scene: ConformanceScene) {
  const definition = await scene.definitionWithDisks();
  const from = paths(definition);
  const to = new Map<string, string>();
  const disks: MovingDisk[] = [];
  await scene.hypervisor.create(definition);
  const sizes = await scene.hypervisor.diskSizes(definition.id);
  for (const id of from.keys()) {
    const [path, bytes] = [await scene.diskFile(), sizes.get(id) ?? 0];
    if (existsSync(path)) await truncate(path, bytes);
    to.set(id, path);
    disks.push({ deviceId: id, bytes, overlay: false });
  }
  const devices = definition.devices.map((device) => {
    const path = to.get(device.id);
    return device.type === 'disk' && path !== undefined
      ? { ...device, source: { path, format: 'raw' as const } }
      : device;
  });
  const move = await beginMove(scene, { definition, retargeted: { ...definition, devices }, disks });
  return { move, from, to };
}

function paths({ devices }: DomainDefinition): Map<string, string> {
  return new Map(
    devices.flatMap((device) =>
      device.type === 'disk' && device.source !== undefined ? [[device.id, device.source.path]] : [],
    ),
  );
}
