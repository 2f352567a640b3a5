/** The agents of two nodes migrate a guest. After any interruption the guest runs on one node and keeps its state. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PODS, VMIS } from '#test/support/agent-scene.ts';
import {
  migrationOutcome,
  startTwoAgents,
  requestMigration,
  concludeMigration,
  type MigratingPods,
  type NodeName,
  type TwoAgents,
} from '#test/support/two-agents.ts';

const LINES = ['n1: begin', 'n2: ready', 'n1: sent', 'n2: stored', 'n1: migrated', 'n2: arrived'];

function assertRunsComplete(scene: TwoAgents, { id }: MigratingPods, node: NodeName): void {
  assert.deepEqual(scene.nodesRunning(id), [node]);
  const guest = scene.hypervisor(node).guest(id);
  const state = [guest.getMemory('newest'), guest.readState('tpm'), guest.readState('efi/BootOrder')];
  assert.deepEqual(state, ['memory', 'secret', '0001']);
}

/** Advances time and acts as the controllers until the migration is over and wound up. */
async function converge(scene: TwoAgents, moving: MigratingPods): Promise<'committed' | 'aborted'> {
  for (let round = 0; round < 12; round++) {
    const is = await migrationOutcome(scene, moving);
    assert.ok(scene.nodesRunning(moving.id).length <= 1, 'the guest runs twice');
    if (is !== undefined) {
      await concludeMigration(scene, moving, is);
      await scene.advance(30);
      return is;
    }
    await scene.advance(10);
  }
  assert.fail('the outcome of the migration is never reported');
}

describe('the agents of two nodes', () => {
  it('migrate a guest and report the progress', async (t) => {
    const scene = await startTwoAgents(t);
    const moving = await scene.launch();
    assert.deepEqual((await scene.api.ok('GET', `${PODS}/launcher-db-2`)).status.phase, 'Pending');
    await requestMigration(scene, moving);

    assert.deepEqual(scene.messages, LINES);
    assert.equal(await migrationOutcome(scene, moving), 'committed');
    assertRunsComplete(scene, moving, 'n2');
    const { status } = await scene.api.ok('GET', `${VMIS}/db`);
    const { phase, downtimeMs, dataRemainingBytes } = status.migrationProgress;
    assert.deepEqual(
      { phase, downtimeMs, dataRemainingBytes },
      { phase: 'Committed', downtimeMs: 0, dataRemainingBytes: 0 },
    );
    const source = await scene.api.ok('GET', `${PODS}/launcher-db`);
    assert.deepEqual([source.status.phase, source.status.reason], ['Succeeded', 'Migrated']);
    const target = await scene.api.ok('GET', `${PODS}/launcher-db-2`);
    const ready = target.status.conditions.find(({ type }: { type: string }) => type === 'Ready');
    assert.equal(ready.status, 'True');

    await concludeMigration(scene, moving, 'committed');
    await scene.advance(10);
    assertRunsComplete(scene, moving, 'n2');
    assert.equal(scene.hypervisor('n1').get(moving.id), undefined);
    assert.equal((await scene.api.call('GET', `${PODS}/launcher-db`)).status, 404);
    const after = (await scene.api.ok('GET', `${VMIS}/db`)).status;
    for (const field of ['deviceHash', 'deviceRevision', 'guestStarted', 'machine']) {
      assert.deepEqual(after[field], status[field], field);
    }
  });

  const cuts: Record<string, (scene: TwoAgents) => readonly NodeName[]> = {
    'the stream is cut': (scene) => {
      scene.cutStreams();
      return [];
    },
    'the source is killed': (scene) => {
      scene.kill('n1');
      return ['n1'];
    },
    'the target is killed': (scene) => {
      scene.kill('n2');
      return ['n2'];
    },
    'both are killed': (scene) => {
      scene.kill('n1');
      scene.kill('n2');
      return ['n1', 'n2'];
    },
  };
  for (const [what, cut] of Object.entries(cuts)) {
    for (const [at, line] of LINES.entries()) {
      it(`agree on one outcome when ${what} at "${line}"`, async (t) => {
        const scene = await startTwoAgents(t);
        const moving = await scene.launch();
        let dead: readonly NodeName[] = [];
        scene.onMessage = (_, count) => {
          assert.ok(scene.nodesRunning(moving.id).length <= 1, 'the guest runs twice');
          if (count === at + 1) dead = cut(scene);
        };
        await requestMigration(scene, moving);
        assert.equal(scene.messages[at], line);
        for (const name of dead) await scene.revive(name);
        const is = await converge(scene, moving);
        // Once the source has recorded "migrated", the migration is committed. A migration whose source never received an
        // answer to "begin" starts again.
        const startsAgain = at === 0 && dead.includes('n1');
        assert.equal(is, startsAgain || at >= LINES.indexOf('n1: migrated') ? 'committed' : 'aborted');
        assertRunsComplete(scene, moving, is === 'committed' ? 'n2' : 'n1');
      });
    }
  }

  for (const node of ['n1', 'n2'] as const) {
    for (const [at, line] of LINES.entries()) {
      it(`agree on one outcome when the agent of ${node} is stopped at "${line}"`, async (t) => {
        const scene = await startTwoAgents(t);
        const moving = await scene.launch();
        scene.onMessage = (_, count) => {
          assert.ok(scene.nodesRunning(moving.id).length <= 1, 'the guest runs twice');
          if (count === at + 1) void scene.agent(node).stop();
        };
        await requestMigration(scene, moving);
        await scene.revive(node);
        const is = await converge(scene, moving);
        assertRunsComplete(scene, moving, is === 'committed' ? 'n2' : 'n1');
      });
    }
  }

  const steps: readonly [NodeName, string, 'committed' | 'aborted'][] = [
    ['n1', 'sending', 'aborted'],
    ['n1', 'migrated', 'committed'],
    ['n1', 'left', 'committed'],
    ['n2', 'stored', 'aborted'],
    ['n2', 'committed', 'committed'],
    ['n2', 'arrived', 'committed'],
  ];
  for (const [node, step, want] of steps) {
    it(`agree on one outcome when ${node} is killed right after it recorded "${step}"`, async (t) => {
      const scene = await startTwoAgents(t);
      const moving = await scene.launch();
      let isHit = false;
      scene.hypervisor(node).host.onStep = (_, now) => {
        if (now !== step || isHit) return;
        isHit = true;
        scene.kill(node);
        throw new Error('the process is dead');
      };
      await requestMigration(scene, moving);
      assert.ok(isHit);
      await scene.advance(10);
      await scene.revive(node);
      assert.equal(await converge(scene, moving), want);
      assertRunsComplete(scene, moving, want === 'committed' ? 'n2' : 'n1');
    });

    it(`agree on one outcome when ${node} does not know whether "${step}" was recorded`, async (t) => {
      const scene = await startTwoAgents(t);
      const moving = await scene.launch();
      let isHit = false;
      scene.hypervisor(node).host.onStep = (_, now) => {
        if (now !== step || isHit) return;
        isHit = true;
        throw new Error('the disk does not answer');
      };
      await requestMigration(scene, moving);
      assert.ok(isHit);
      await scene.advance(10);
      assert.equal(await converge(scene, moving), want);
      assertRunsComplete(scene, moving, want === 'committed' ? 'n2' : 'n1');
    });
  }

  it('wait while a source that may have migrated is unreachable, and continue when it is reachable', async (t) => {
    const scene = await startTwoAgents(t);
    const moving = await scene.launch();
    scene.hypervisor('n1').host.onStep = (_, step) => {
      if (step !== 'migrated') return;
      scene.kill('n1');
      scene.areDisconnected = true;
    };
    await requestMigration(scene, moving);
    await scene.advance(120);
    assert.deepEqual(scene.nodesRunning(moving.id), []);
    assert.equal(await migrationOutcome(scene, moving), undefined);
    scene.areDisconnected = false;
    await scene.revive('n1');
    await scene.advance(30);
    assertRunsComplete(scene, moving, 'n2');
    assert.equal(await migrationOutcome(scene, moving), 'committed');
  });

  it('use the recorded outcome when the source has forgotten the migration', async (t) => {
    const scene = await startTwoAgents(t);
    const moving = await scene.launch();
    scene.onMessage = (line) => {
      // The target receives nothing more, and returns only after the source has forgotten the migration.
      if (line === 'n1: migrated') scene.kill('n2');
    };
    await requestMigration(scene, moving);
    assert.equal(await migrationOutcome(scene, moving), 'committed');
    await concludeMigration(scene, moving, 'committed');
    await scene.advance(10);
    assert.equal(scene.hypervisor('n1').get(moving.id), undefined);
    await scene.revive('n2');
    await scene.advance(30);
    assertRunsComplete(scene, moving, 'n2');
  });
});
