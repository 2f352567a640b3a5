/**
 * A source node that is lost before it decided who owns a migrating guest: the user decides, and both node agents obey,
 * also that of the source node when it returns.
 */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { PODS, VMIS } from '#test/support/agent-scene.ts';
import type { Loose } from '#test/support/test-api.ts';
import {
  migrationOutcome,
  startTwoAgents,
  requestMigration,
  concludeMigration,
  type MigratingPods,
  type TwoAgents,
} from '#test/support/two-agents.ts';

/** Migrates until the target has the whole guest, and then loses the source, for whose decision the target waits. */
async function loseSource(t: TestContext): Promise<[TwoAgents, MigratingPods]> {
  const scene = await startTwoAgents(t);
  const moving = await scene.launch();
  scene.onMessage = (line) => {
    if (line === 'n2: stored') scene.kill('n1');
  };
  await requestMigration(scene, moving);
  await scene.advance(60);
  assert.equal(await migrationOutcome(scene, moving), undefined);
  assert.deepEqual(scene.nodesRunning(moving.id), []);
  return [scene, moving];
}

async function returnSource(scene: TwoAgents, { id }: MigratingPods): Promise<Loose[]> {
  const { host } = scene.hypervisor('n1');
  const steps: string[] = [];
  host.onStep = (_, step) => void steps.push(step);
  await scene.revive('n1');
  await scene.advance(30);
  assert.deepEqual(scene.nodesRunning(id).length, 1);
  const events = await scene.api.ok('GET', '/api/v1/namespaces/default/events');
  return [steps, events.items.filter(({ reason }: Loose) => reason === 'GuestGivenUp')];
}

describe('a guest whose source is lost before it decided', () => {
  it('runs on the target if the user decides so, and not on the source when that returns', async (t) => {
    const [scene, moving] = await loseSource(t);
    await concludeMigration(scene, moving, 'committed');
    await scene.advance(30);
    assert.deepEqual(scene.nodesRunning(moving.id), ['n2']);

    const [steps, events] = await returnSource(scene, moving);
    assert.deepEqual(scene.nodesRunning(moving.id), ['n2']);
    assert.deepEqual(steps, []);
    assert.equal(events?.length, 1);
    assert.equal(scene.hypervisor('n1').get(moving.id), undefined);
    assert.equal((await scene.api.call('GET', `${PODS}/launcher-db`)).status, 404);
    assert.equal(scene.hypervisor('n2').guest(moving.id).getMemory('newest'), 'memory');
  });

  it('runs on the source if the user decides so, when that returns', async (t) => {
    const [scene, moving] = await loseSource(t);
    await concludeMigration(scene, moving, 'aborted');
    await scene.advance(30);
    assert.equal(scene.hypervisor('n2').get(moving.id), undefined);
    const [steps, events] = await returnSource(scene, moving);
    assert.deepEqual([steps, events], [['aborted'], []]);
    assert.deepEqual(scene.nodesRunning(moving.id), ['n1']);
  });

  it('does not run on the source before its instance can be read', async (t) => {
    const [scene, moving] = await loseSource(t);
    const api = Promise.withResolvers<void>();
    const stopped = scene.agent('n1').stop();
    scene.apiDelay = api.promise;
    await scene.clock.advance(10_000);
    const revived = scene.revive('n1');
    await scene.clock.advance(30_000);
    assert.deepEqual(scene.nodesRunning(moving.id), []);
    api.resolve();
    await Promise.all([revived, stopped]);
    await scene.advance(30);
    assert.deepEqual(scene.nodesRunning(moving.id), ['n1']);
  });
});

describe('the downtime of a guest', () => {
  const cases: Record<string, { at: string; want: number }> = {
    'does not receive "arrived"': { at: 'n2: arrived', want: 0 },
    'cannot send "migrated"': { at: 'n1: migrated', want: 20_000 },
  };
  for (const [what, { at, want }] of Object.entries(cases)) {
    it(`is reported by the target if the source ${what}`, async (t) => {
      const scene = await startTwoAgents(t);
      const moving = await scene.launch();
      scene.onMessage = (line) => {
        if (line === at) scene.kill('n1');
      };
      await requestMigration(scene, moving);
      await scene.advance(20);
      await concludeMigration(scene, moving, 'committed');
      await scene.advance(10);
      const { phase, downtimeMs } = (await scene.api.ok('GET', `${VMIS}/db`)).status.migrationProgress;
      assert.equal(phase, 'Committed');
      assert.ok(downtimeMs >= want && downtimeMs < want + 20_000, `${downtimeMs} ms`);
    });
  }
});
