/** Jobs whose controller is cut off after each of its writes: the next one takes over from there. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiRequest } from '#engine/request.ts';
import {
  aJob,
  change,
  failedBy,
  type Scene,
  standing,
  startScene,
  submit,
  SUCCEEDED,
} from '#test/support/job-scene.ts';
import type { Loose } from '#test/support/test-api.ts';

interface Story {
  readonly job: Loose;
  /** May be told again from anywhere in it. While nobody is there to look, pods may be left alone. */
  play(scene: Scene, alive: boolean): Promise<void>;
  readonly standing: string[];
  /** By how many pods there were at most before the last telling. */
  counts(made: number): [succeeded: number, failed: number, pods: number];
}

/** Pods end as they come; the first fails where it is said, and none did before. */
async function workThrough(scene: Scene, firstFails: boolean): Promise<void> {
  let failNext = firstFails && !(await scene.pods()).some(({ status }) => status.phase === 'Failed');
  for (let step = 0; step < 12; step++) {
    await scene.settle();
    if (standing(await scene.job()).includes(SUCCEEDED[1]!)) return;
    for (const pod of await scene.active()) {
      await (failNext ? scene.node.fail(pod) : scene.node.succeed(pod));
      failNext = false;
    }
    await scene.advance(10);
  }
}

const stories: Record<string, Story> = {
  'through a failure to its end': {
    job: aJob({ parallelism: 2, completions: 3 }),
    play: (scene) => workThrough(scene, true),
    standing: SUCCEEDED,
    counts: () => [3, 1, 4],
  },
  'index by index': {
    job: aJob({ parallelism: 2, completions: 3, completionMode: 'Indexed', backoffLimitPerIndex: 2 }),
    play: (scene) => workThrough(scene, true),
    standing: SUCCEEDED,
    counts: () => [3, 1, 4],
  },
  'suspended and resumed': {
    job: aJob({ parallelism: 2, completions: 2, suspend: false }),
    async play(scene, alive) {
      const { spec, status } = await scene.job();
      if (spec.suspend || !status.conditions) await change(scene, { suspend: true });
      await scene.advance(10);
      await change(scene, { suspend: false });
      // What ends between the loss of its finalizer and its deletion would be done again, as in Kubernetes.
      if (alive) await workThrough(scene, false);
    },
    standing: SUCCEEDED,
    counts: () => [2, 0, 2],
  },
  'active too long': {
    job: aJob({ parallelism: 2, completions: 2, activeDeadlineSeconds: 60 }),
    play: (scene) => scene.advance(60),
    standing: failedBy('DeadlineExceeded'),
    counts: (made) => [0, made, 0],
  },
};

const isWrite = ({ method, path }: ApiRequest) => method !== 'GET' && !path.includes('/events');

for (const [name, story] of Object.entries(stories)) {
  test(`cut after any write, a Job goes on and no pod is lost or counted twice: ${name}`, async (t) => {
    let writes = 0;
    const whole = await startScene(t, (request) => void (isWrite(request) && writes++));
    await submit(whole, story.job);
    await story.play(whole, true);
    assert.ok(writes > 5, `${writes} writes to cut after`);

    for (let cutAfter = 0; cutAfter <= writes; cutAfter++) {
      let left = cutAfter;
      const scene = await startScene(t, (request) => {
        if (isWrite(request) && left-- <= 0) throw new Error('the process is gone');
      });
      await submit(scene, story.job);
      const before = (await scene.pods()).length;
      await story.play(scene, false);
      await scene.restart();
      const made = Math.max(before, (await scene.pods()).length);
      await story.play(scene, true);
      const job = await scene.job();
      const { succeeded = 0, failed = 0 } = job.status;
      const pods = await scene.pods();
      assert.deepEqual([succeeded, failed, pods.length], story.counts(made), `cut after write ${cutAfter}`);
      assert.deepEqual(standing(job), story.standing, `cut after write ${cutAfter}`);
      assert.deepEqual(
        pods.flatMap(({ metadata }) => metadata.finalizers ?? []),
        [],
      );
    }
  });
}
