/** Migrations that fail, or are cancelled, or follow one another: real agents of two nodes; the test acts as the controllers. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { PODS, VMIS } from '#test/support/agent-scene.ts';
import type { Loose } from '#test/support/test-api.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import {
  migrationOutcome,
  startTwoAgents,
  requestMigration,
  concludeMigration,
  type MigratingPods,
  type TwoAgents,
} from '#test/support/two-agents.ts';

const patchMigrationState = (scene: TwoAgents, migrationState: Loose) =>
  scene.api.ok('PATCH', `${VMIS}/db/status`, { body: { status: { migrationState } } });

async function readProgress({ api }: TwoAgents): Promise<Loose> {
  return (await api.ok('GET', `${VMIS}/db`)).status.migrationProgress;
}

/** Starts a migration and holds it while it copies. */
async function startCopying(t: TestContext, migrationConfiguration: Loose = {}): Promise<[TwoAgents, MigratingPods]> {
  const scene = await startTwoAgents(t);
  const moving = await scene.launch();
  scene.hypervisor('n1').host.holdSends = true;
  await requestMigration(scene, moving, { migrationConfiguration });
  assert.deepEqual(scene.messages, ['n1: begin', 'n2: ready']);
  assert.equal((await readProgress(scene)).phase, 'Copying');
  return [scene, moving];
}

/** Asserts that the guest runs on the source, and that nothing is left on the target. */
async function assertAborted(scene: TwoAgents, moving: MigratingPods, why: RegExp): Promise<void> {
  assert.equal(await migrationOutcome(scene, moving), 'aborted');
  const { phase, message } = await readProgress(scene);
  assert.equal(phase, 'Failed');
  assert.match(message, why);
  await concludeMigration(scene, moving, 'aborted');
  await scene.advance(10);
  assert.deepEqual(scene.nodesRunning(moving.id), ['n1']);
  assert.equal(scene.hypervisor('n1').guest(moving.id).getMemory('newest'), 'memory');
  assert.equal(scene.hypervisor('n2').get(moving.id), undefined);
  assert.ok(scene.volumes.n2.calls.includes('release'));
  assert.equal((await scene.api.call('GET', `${PODS}/launcher-db-2`)).status, 404);
}

interface AbortCase {
  readonly cause: (scene: TwoAgents) => Promise<unknown>;
  readonly settings?: Loose;
  readonly why: RegExp;
}

describe('a migration', () => {
  const reasons: Record<string, AbortCase> = {
    'it is cancelled': { cause: (scene) => patchMigrationState(scene, { abortRequested: true }), why: /cancelled/ },
    'it is no longer wanted': {
      cause: (scene) => patchMigrationState(scene, { completed: true, failed: true }),
      why: /no longer requested/,
    },
    'its target pod is deleted': {
      cause: ({ api }) => api.ok('DELETE', `${PODS}/launcher-db-2`),
      why: /pod on the target node was deleted/,
    },
    'it makes no progress': {
      cause: (scene) => scene.advance(25),
      settings: { progressTimeout: 20 },
      why: /nothing was copied for 20 seconds/,
    },
    'it takes too long': {
      cause: (scene) => scene.advance(25),
      settings: { completionTimeoutPerGiB: 20 },
      why: /not complete in time/,
    },
    'the process at the target dies': {
      cause: async (scene) =>
        scene
          .hypervisor('n2')
          .guest((await scene.api.ok('GET', `${VMIS}/db`)).metadata.uid)
          .crash('injected failure'),
      why: /./,
    },
  };
  for (const [when, { cause, settings, why }] of Object.entries(reasons)) {
    it(`is aborted when ${when}, and the guest keeps running`, async (t) => {
      const [scene, moving] = await startCopying(t, settings);
      await cause(scene);
      await scene.settle();
      await assertAborted(scene, moving, why);
    });
  }

  it('can be cancelled before it begins', async (t) => {
    const scene = await startTwoAgents(t);
    const moving = await scene.launch();
    await requestMigration(scene, moving, { abortRequested: true });
    assert.deepEqual(scene.messages, []);
    const { phase, message } = await readProgress(scene);
    assert.deepEqual([phase, message], ['Failed', 'the migration was cancelled']);
    assert.deepEqual(scene.nodesRunning(moving.id), ['n1']);
  });

  const faults: Record<string, (scene: TwoAgents, fault: HypervisorError) => void> = {
    'the target cannot receive': (scene, fault) => scene.hypervisor('n2').failNextReceive(fault),
    'the source cannot send': (scene, fault) => scene.hypervisor('n1').failNextSend(fault),
    'the target cannot store': (scene, fault) => scene.hypervisor('n2').failNextStore(fault),
    'the target cannot prepare the volumes': ({ volumes }) => {
      volumes.n2.next = { is: 'failed', reason: 'No', message: 'injected failure' };
    },
  };
  for (const [what, fail] of Object.entries(faults)) {
    it(`fails with the reason when ${what}`, async (t) => {
      const scene = await startTwoAgents(t);
      const moving = await scene.launch();
      fail(scene, new HypervisorError('injected failure'));
      await requestMigration(scene, moving);
      await assertAborted(scene, moving, /injected failure/);
    });
  }

  it('waits up to 30 seconds for a volume that is not ready', async (t) => {
    const scene = await startTwoAgents(t);
    const moving = await scene.launch();
    scene.volumes.n2.next = { is: 'waiting', reason: 'Later', message: 'not yet' };
    await requestMigration(scene, moving);
    await scene.advance(5);
    assert.equal((await readProgress(scene)).phase, 'Connecting');
    await scene.advance(30);
    await assertAborted(scene, moving, /not yet/);
  });

  it('is aborted when the guest has to stop, and the guest stops', async (t) => {
    const [scene, moving] = await startCopying(t);
    await scene.api.ok('DELETE', `${PODS}/launcher-db`);
    await scene.settle();
    assert.equal((await readProgress(scene)).phase, 'Failed');
    assert.deepEqual(scene.nodesRunning(moving.id), []);
    assert.equal((await scene.api.call('GET', `${PODS}/launcher-db`)).status, 404);
    await scene.advance(10);
    assert.equal(scene.hypervisor('n2').get(moving.id), undefined);
  });

  it('is aborted at once when the agent is stopped', async (t) => {
    const [scene, moving] = await startCopying(t);
    await scene.agent('n1').stop();
    assert.deepEqual(scene.nodesRunning(moving.id), ['n1']);
    assert.equal(scene.hypervisor('n1').get(moving.id)?.migration?.step, 'aborted');
  });

  it('refuses pause and reset of the guest', async (t) => {
    const [scene, moving] = await startCopying(t);
    await assert.rejects(scene.agent('n1').pause(moving.id), /VMI is migrating/);
    await assert.rejects(scene.agent('n2').reset(moving.id), /VMI is migrating/);
    scene.hypervisor('n1').host.finishSends();
    await scene.settle();
    assert.deepEqual(scene.nodesRunning(moving.id), ['n2']);
  });

  it('continues the guest although the API does not answer', async (t) => {
    const scene = await startTwoAgents(t);
    const moving = await scene.launch();
    const { promise, resolve } = Promise.withResolvers<void>();
    scene.onMessage = (line) => {
      if (line === 'n2: ready') scene.apiDelay = promise;
    };
    await requestMigration(scene, moving);
    assert.equal(scene.messages.at(-1), 'n2: arrived');
    assert.deepEqual(scene.nodesRunning(moving.id), ['n2']);
    assert.equal(await migrationOutcome(scene, moving), undefined);
    resolve();
    await scene.settle();
    assert.equal(await migrationOutcome(scene, moving), 'committed');
  });

  it('can follow another one, back to the first node', async (t) => {
    const scene = await startTwoAgents(t);
    const moving = await scene.launch();
    await requestMigration(scene, moving);
    // The source pod still exists when the next target pod is created.
    await scene.api.ok('PATCH', `${PODS}/launcher-db`, { body: { metadata: { finalizers: ['test.io/slow'] } } });
    await concludeMigration(scene, moving, 'committed');
    const vmi = await scene.api.ok('GET', `${VMIS}/db`);
    const back = 'aaaaaaaa-0000-4000-8000-000000000002';
    const body = {
      ...moving.source,
      metadata: {
        name: 'launcher-db-3',
        labels: { ...moving.source.metadata.labels, 'kubevirt.io/migrationJobUID': back },
        annotations: moving.source.metadata.annotations,
        ownerReferences: moving.source.metadata.ownerReferences,
      },
      status: undefined,
    };
    const third = await scene.api.ok('POST', PODS, { body });
    await scene.settle();
    const activePods = { ...vmi.status.activePods, [third.metadata.uid]: 'n1' };
    const migrationState = {
      migrationUid: back,
      ...{ sourceNode: 'n2', sourcePod: 'launcher-db-2', targetNode: 'n1', targetPod: 'launcher-db-3' },
      ...{ completed: null, failed: null },
    };
    await scene.api.ok('PATCH', `${VMIS}/db/status`, { body: { status: { activePods, migrationState } } });
    await scene.settle();
    await scene.advance(5);
    assert.deepEqual(scene.nodesRunning(moving.id), ['n1']);
    assert.equal(scene.hypervisor('n1').guest(moving.id).readState('tpm'), 'secret');
    const { phase, migrationUid } = await readProgress(scene);
    assert.deepEqual({ phase, migrationUid }, { phase: 'Committed', migrationUid: back });
  });
});
