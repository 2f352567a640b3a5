/** Jobs whose controller is killed after each of its writes: the next controller continues. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiRequest } from '#engine/request/request.ts';
import {
  aJob,
  patchJob,
  failedConditions,
  type JobScene,
  trueConditions,
  startJobScene,
  submitJob,
  SUCCEEDED_CONDITIONS,
} from '#test/support/job-scene.ts';
import type { Loose } from '#test/support/test-api.ts';

interface Sequence {
  readonly job: Loose;
  /** Runs the sequence; can be repeated from any point. While no controller runs, it may leave pods alone. */
  run(scene: JobScene, isControllerRunning: boolean): Promise<void>;
  readonly standing: string[];
  /** Returns the expected counts, given the largest number of pods before the last run of the sequence. */
  counts(made: number): [succeeded: number, failed: number, pods: number];
}

/** Ends pods as they appear; the first one fails if `firstFails` is set and none has failed before. */
async function finishPods(scene: JobScene, firstFails: boolean): Promise<void> {
  let failNext = firstFails && !(await scene.pods()).some(({ status }) => status.phase === 'Failed');
  for (let step = 0; step < 12; step++) {
    await scene.settle();
    if (trueConditions(await scene.job()).includes(SUCCEEDED_CONDITIONS[1]!)) return;
    for (const pod of await scene.activePods()) {
      await (failNext ? scene.node.fail(pod) : scene.node.succeed(pod));
      failNext = false;
    }
    await scene.advance(10);
  }
}

const sequences: Record<string, Sequence> = {
  'a pod fails': {
    job: aJob({ parallelism: 2, completions: 3 }),
    run: (scene) => finishPods(scene, true),
    standing: SUCCEEDED_CONDITIONS,
    counts: () => [3, 1, 4],
  },
  'indexed completion': {
    job: aJob({ parallelism: 2, completions: 3, completionMode: 'Indexed', backoffLimitPerIndex: 2 }),
    run: (scene) => finishPods(scene, true),
    standing: SUCCEEDED_CONDITIONS,
    counts: () => [3, 1, 4],
  },
  'suspended and resumed': {
    job: aJob({ parallelism: 2, completions: 2, suspend: false }),
    async run(scene, isControllerRunning) {
      const { spec, status } = await scene.job();
      if (spec.suspend || !status.conditions) await patchJob(scene, { suspend: true });
      await scene.advance(10);
      await patchJob(scene, { suspend: false });
      // A pod that ends after it lost its finalizer and before its deletion is run again, as in Kubernetes.
      if (isControllerRunning) await finishPods(scene, false);
    },
    standing: SUCCEEDED_CONDITIONS,
    counts: () => [2, 0, 2],
  },
  'deadline exceeded': {
    job: aJob({ parallelism: 2, completions: 2, activeDeadlineSeconds: 60 }),
    run: (scene) => scene.advance(60),
    standing: failedConditions('DeadlineExceeded'),
    counts: (made) => [0, made, 0],
  },
};

const isWrite = ({ method, path }: ApiRequest) => method !== 'GET' && !path.includes('/events');

for (const [name, sequence] of Object.entries(sequences)) {
  test(`a Job whose controller was killed continues, and no pod is lost or counted twice: ${name}`, async (t) => {
    let writes = 0;
    const whole = await startJobScene(t, (request) => void (isWrite(request) && writes++));
    await submitJob(whole, sequence.job);
    await sequence.run(whole, true);
    assert.ok(writes > 5, `${writes} writes to cut after`);

    for (let cutAfter = 0; cutAfter <= writes; cutAfter++) {
      let left = cutAfter;
      const scene = await startJobScene(t, (request) => {
        if (isWrite(request) && left-- <= 0) throw new Error('the process was killed');
      });
      await submitJob(scene, sequence.job);
      const before = (await scene.pods()).length;
      await sequence.run(scene, false);
      await scene.restart();
      const made = Math.max(before, (await scene.pods()).length);
      await sequence.run(scene, true);
      const job = await scene.job();
      const { succeeded = 0, failed = 0 } = job.status;
      const pods = await scene.pods();
      assert.deepEqual([succeeded, failed, pods.length], sequence.counts(made), `cut after write ${cutAfter}`);
      assert.deepEqual(trueConditions(job), sequence.standing, `cut after write ${cutAfter}`);
      assert.deepEqual(
        pods.flatMap(({ metadata }) => metadata.finalizers ?? []),
        [],
      );
    }
  });
}
