/** The agents of two nodes move a guest between them, and whatever is cut: it runs once, and has all that it had. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PODS, VMIS } from '#test/support/agent-scene.ts';
import {
  outcome,
  startTwoAgents,
  tellMigration,
  windUp,
  type Moving,
  type NodeName,
  type TwoAgents,
} from '#test/support/two-agents.ts';

const LINES = ['n1: begin', 'n2: ready', 'n1: sent', 'n2: stored', 'n1: migrated', 'n2: arrived'];

function assertWhole(scene: TwoAgents, { id }: Moving, node: NodeName): void {
  assert.deepEqual(scene.running(id), [node]);
  const guest = scene.hypervisor(node).guest(id);
  const told = [guest.recall('newest'), guest.kept('tpm'), guest.kept('efi/BootOrder')];
  assert.deepEqual(told, ['memory', 'secret', '0001']);
}

/** Time goes on, controllers do their part, until nothing is left of it. */
async function converge(scene: TwoAgents, moving: Moving): Promise<'committed' | 'aborted'> {
  for (let round = 0; round < 12; round++) {
    const is = await outcome(scene, moving);
    assert.ok(scene.running(moving.id).length <= 1, 'the guest runs twice');
    if (is !== undefined) {
      await windUp(scene, moving, is);
      await scene.advance(30);
      return is;
    }
    await scene.advance(10);
  }
  assert.fail('nobody says what became of the migration');
}

describe('the agents of two nodes', () => {
  it('move a guest, and tell how it went', async (t) => {
    const scene = await startTwoAgents(t);
    const moving = await scene.launch();
    assert.deepEqual((await scene.api.ok('GET', `${PODS}/launcher-db-2`)).status.phase, 'Pending');
    await tellMigration(scene, moving);

    assert.deepEqual(scene.said, LINES);
    assert.equal(await outcome(scene, moving), 'committed');
    assertWhole(scene, moving, 'n2');
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

    await windUp(scene, moving, 'committed');
    await scene.advance(10);
    assertWhole(scene, moving, 'n2');
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
      it(`bring a guest to one end when ${what} at "${line}"`, async (t) => {
        const scene = await startTwoAgents(t);
        const moving = await scene.launch();
        let dead: readonly NodeName[] = [];
        scene.onLine = (_, count) => {
          assert.ok(scene.running(moving.id).length <= 1, 'the guest runs twice');
          if (count === at + 1) dead = cut(scene);
        };
        await tellMigration(scene, moving);
        assert.equal(scene.said[at], line);
        for (const name of dead) await scene.revive(name);
        const is = await converge(scene, moving);
        // From the moment at which the source wrote it down, there is no way back. What was never heard begins anew.
        const isAnew = at === 0 && dead.includes('n1');
        assert.equal(is, isAnew || at >= LINES.indexOf('n1: migrated') ? 'committed' : 'aborted');
        assertWhole(scene, moving, is === 'committed' ? 'n2' : 'n1');
      });
    }
  }

  for (const node of ['n1', 'n2'] as const) {
    for (const [at, line] of LINES.entries()) {
      it(`bring a guest to one end when the agent of ${node} is stopped at "${line}"`, async (t) => {
        const scene = await startTwoAgents(t);
        const moving = await scene.launch();
        scene.onLine = (_, count) => {
          assert.ok(scene.running(moving.id).length <= 1, 'the guest runs twice');
          if (count === at + 1) void scene.agent(node).stop();
        };
        await tellMigration(scene, moving);
        await scene.revive(node);
        const is = await converge(scene, moving);
        assertWhole(scene, moving, is === 'committed' ? 'n2' : 'n1');
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
    it(`bring a guest to one end when ${node} is killed with "${step}" just written`, async (t) => {
      const scene = await startTwoAgents(t);
      const moving = await scene.launch();
      let isHit = false;
      scene.hypervisor(node).host.onStep = (_, now) => {
        if (now !== step || isHit) return;
        isHit = true;
        scene.kill(node);
        throw new Error('the process is dead');
      };
      await tellMigration(scene, moving);
      assert.ok(isHit);
      await scene.advance(10);
      await scene.revive(node);
      assert.equal(await converge(scene, moving), want);
      assertWhole(scene, moving, want === 'committed' ? 'n2' : 'n1');
    });

    it(`bring a guest to one end when ${node} cannot tell whether "${step}" was written`, async (t) => {
      const scene = await startTwoAgents(t);
      const moving = await scene.launch();
      let isHit = false;
      scene.hypervisor(node).host.onStep = (_, now) => {
        if (now !== step || isHit) return;
        isHit = true;
        throw new Error('the disk does not answer');
      };
      await tellMigration(scene, moving);
      assert.ok(isHit);
      await scene.advance(10);
      assert.equal(await converge(scene, moving), want);
      assertWhole(scene, moving, want === 'committed' ? 'n2' : 'n1');
    });
  }

  it('wait while the source that may have migrated is not reached, and go on when it is', async (t) => {
    const scene = await startTwoAgents(t);
    const moving = await scene.launch();
    scene.hypervisor('n1').host.onStep = (_, step) => {
      if (step !== 'migrated') return;
      scene.kill('n1');
      scene.isApart = true;
    };
    await tellMigration(scene, moving);
    await scene.advance(120);
    assert.deepEqual(scene.running(moving.id), []);
    assert.equal(await outcome(scene, moving), undefined);
    scene.isApart = false;
    await scene.revive('n1');
    await scene.advance(30);
    assertWhole(scene, moving, 'n2');
    assert.equal(await outcome(scene, moving), 'committed');
  });

  it('believe what is written where the source has forgotten', async (t) => {
    const scene = await startTwoAgents(t);
    const moving = await scene.launch();
    scene.onLine = (line) => {
      // It hears nothing more, and comes back only after the source has forgotten.
      if (line === 'n1: migrated') scene.kill('n2');
    };
    await tellMigration(scene, moving);
    assert.equal(await outcome(scene, moving), 'committed');
    await windUp(scene, moving, 'committed');
    await scene.advance(10);
    assert.equal(scene.hypervisor('n1').get(moving.id), undefined);
    await scene.revive('n2');
    await scene.advance(30);
    assertWhole(scene, moving, 'n2');
  });
});
