/** Jobs, from their creation to their end. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  aJob,
  patchJob,
  failedConditions,
  JOBS,
  PODS,
  trueConditions,
  startJobScene,
  submitJob,
  SUCCEEDED_CONDITIONS,
} from '#test/support/job-scene.ts';
import type { Loose } from '#test/support/test-api.ts';

test('a Job runs one pod and is complete when the pod has succeeded', async (t) => {
  const scene = await startJobScene(t);
  const { metadata } = await submitJob(scene, aJob());
  const [pod] = await scene.pods();
  assert.match(pod.metadata.name, /^work-[a-z0-9]{5}$/);
  assert.deepEqual(pod.metadata.labels, {
    'batch.kubernetes.io/controller-uid': metadata.uid,
    'batch.kubernetes.io/job-name': 'work',
    'controller-uid': metadata.uid,
    'job-name': 'work',
  });
  const owner = { apiVersion: 'batch/v1', kind: 'Job', name: 'work', uid: metadata.uid };
  assert.deepEqual(pod.metadata.ownerReferences, [{ ...owner, controller: true, blockOwnerDeletion: true }]);
  assert.deepEqual(pod.metadata.finalizers, ['batch.kubernetes.io/job-tracking']);
  const startTime = '2030-03-17T17:46:40Z';
  const idle = { ready: 0, terminating: 0, uncountedTerminatedPods: {} };
  assert.deepEqual((await scene.job()).status, { ...idle, active: 1, startTime });

  await scene.node.run(pod);
  await scene.settle();
  assert.equal((await scene.job()).status.ready, 1);

  await scene.advance(5);
  await scene.node.succeed(pod);
  await scene.settle();
  const done = await scene.job();
  const now = '2030-03-17T17:46:45Z';
  const conditionFields = { status: 'True', lastProbeTime: now, lastTransitionTime: now };
  const reasonFields = { reason: 'CompletionsReached', message: 'Reached expected number of succeeded pods' };
  assert.deepEqual(done.status, {
    ...idle,
    startTime,
    completionTime: now,
    succeeded: 1,
    conditions: [
      { type: 'SuccessCriteriaMet', ...conditionFields, ...reasonFields },
      { type: 'Complete', ...conditionFields, ...reasonFields },
    ],
  });
  const [ended] = await scene.pods();
  assert.equal(ended.metadata.finalizers, undefined);
  assert.deepEqual(await scene.events(), [
    `Normal SuccessfulCreate Created pod: ${pod.metadata.name}`,
    'Normal Completed Job completed',
  ]);
});

test('parallelism limits the concurrent pods, completions the successful ones', async (t) => {
  const scene = await startJobScene(t);
  await submitJob(scene, aJob({ parallelism: 2, completions: 3 }));
  const first = await scene.activePods();
  assert.equal(first.length, 2);
  await scene.node.succeed(first[0]);
  await scene.settle();
  assert.equal((await scene.activePods()).length, 2);
  await scene.node.succeed(first[1]);
  await scene.settle();
  const [last, ...others] = await scene.activePods();
  assert.deepEqual(others, [], 'only one completion is missing');
  await scene.node.succeed(last);
  await scene.settle();
  const job = await scene.job();
  assert.deepEqual([job.status.succeeded, trueConditions(job)], [3, SUCCEEDED_CONDITIONS]);
  assert.equal((await scene.pods()).length, 3);
});

test('creates more pods than fit into one batch', async (t) => {
  const scene = await startJobScene(t);
  await submitJob(scene, aJob({ parallelism: 70, completions: 70 }));
  const pods = await scene.activePods();
  assert.equal(pods.length, 70);
  for (const pod of pods) await scene.node.succeed(pod);
  await scene.settle();
  const { status } = await scene.job();
  assert.deepEqual(
    [status.succeeded, status.uncountedTerminatedPods, trueConditions({ status })],
    [70, {}, SUCCEEDED_CONDITIONS],
  );
});

test('lower parallelism deletes the pods with the least progress, and they do not count as failed', async (t) => {
  const scene = await startJobScene(t);
  await submitJob(scene, aJob({ parallelism: 3, completions: 5 }));
  const [ahead] = await scene.activePods();
  await scene.node.run(ahead);
  await patchJob(scene, { parallelism: 1 });
  assert.deepEqual(
    (await scene.pods()).map(({ metadata }) => metadata.name),
    [ahead.metadata.name],
  );
  const { status } = await scene.job();
  assert.deepEqual([status.active, status.failed], [1, undefined]);
});

test('a work queue creates no more pods after the first success, and waits for the others', async (t) => {
  const scene = await startJobScene(t);
  await submitJob(scene, aJob({ parallelism: 2 }));
  const [one, two] = await scene.activePods();
  await scene.node.succeed(one);
  await scene.settle();
  assert.deepEqual(trueConditions(await scene.job()), []);
  assert.equal((await scene.pods()).length, 2);
  await scene.node.fail(two);
  await scene.settle();
  const job = await scene.job();
  assert.deepEqual([job.status.succeeded, job.status.failed, trueConditions(job)], [1, 1, SUCCEEDED_CONDITIONS]);
});

test('failed pods are replaced with increasing delays, until the backoff limit', async (t) => {
  const scene = await startJobScene(t);
  await submitJob(scene, aJob({ backoffLimit: 2 }));
  for (const waitSeconds of [10, 20]) {
    const [pod] = await scene.activePods();
    await scene.node.fail(pod);
    await scene.settle();
    await scene.advance(waitSeconds - 1);
    assert.deepEqual(await scene.activePods(), [], `no new pod before ${waitSeconds} s`);
    await scene.advance(1);
    assert.equal((await scene.activePods()).length, 1, `a new pod after ${waitSeconds} s`);
  }
  const [last] = await scene.activePods();
  await scene.node.fail(last);
  await scene.settle();
  const job = await scene.job();
  assert.deepEqual([job.status.failed, trueConditions(job)], [3, failedConditions('BackoffLimitExceeded')]);
  assert.equal(job.status.completionTime, undefined);
  assert.equal(
    (await scene.events()).at(-1),
    'Warning BackoffLimitExceeded Job has reached the specified backoff limit',
  );
  await scene.advance(3600);
  assert.equal((await scene.pods()).length, 3, 'a failed Job stays failed');
});

test('the delay survives a restart of the controller', async (t) => {
  const scene = await startJobScene(t);
  await submitJob(scene, aJob());
  const [pod] = await scene.activePods();
  await scene.node.fail(pod);
  await scene.settle();
  await scene.restart();
  await scene.advance(9);
  assert.deepEqual(await scene.activePods(), []);
  await scene.advance(1);
  assert.equal((await scene.activePods()).length, 1);
});

test('with restartPolicy OnFailure the restarts of containers count', async (t) => {
  const scene = await startJobScene(t);
  await submitJob(scene, aJob({ backoffLimit: 2 }, { restartPolicy: 'OnFailure' }));
  const [pod] = await scene.activePods();
  await scene.node.run(pod, 1);
  await scene.settle();
  assert.deepEqual(trueConditions(await scene.job()), []);
  await scene.node.run(pod, 2);
  await scene.settle();
  assert.deepEqual(trueConditions(await scene.job()), failedConditions('BackoffLimitExceeded'));
  assert.deepEqual(await scene.pods(), []);
  assert.ok((await scene.events()).includes(`Normal SuccessfulDelete Deleted pod: ${pod.metadata.name}`));
});

test('a Job that exceeds its active deadline fails, and its pods are deleted', async (t) => {
  const scene = await startJobScene(t);
  await submitJob(scene, aJob({ parallelism: 2, completions: 2, activeDeadlineSeconds: 60 }));
  await scene.advance(59);
  assert.equal((await scene.activePods()).length, 2);
  await scene.advance(1);
  const job = await scene.job();
  assert.deepEqual([job.status.failed, trueConditions(job)], [2, failedConditions('DeadlineExceeded')]);
  assert.deepEqual(await scene.pods(), []);
  assert.equal((await scene.events()).at(-1), 'Warning DeadlineExceeded Job was active longer than specified deadline');
});

test('a Job whose pods cannot be created exceeds its active deadline, too', async (t) => {
  const scene = await startJobScene(t, ({ method, path }) => {
    if (method === 'POST' && path === PODS) throw new Error('exceeded quota');
  });
  await submitJob(scene, aJob({ activeDeadlineSeconds: 1000 }));
  // Retries become rarer: the one after the last before the deadline would come minutes after it.
  for (let seconds = 0; seconds < 999; seconds += 27) await scene.advance(27);
  assert.deepEqual(trueConditions(await scene.job()), []);
  await scene.advance(1);
  assert.deepEqual(trueConditions(await scene.job()), failedConditions('DeadlineExceeded'));
});

test('a suspended Job has no pods, and its time starts again when it is resumed', async (t) => {
  const scene = await startJobScene(t);
  await submitJob(scene, aJob({ parallelism: 2, completions: 2, activeDeadlineSeconds: 60 }));
  await scene.advance(40);
  await patchJob(scene, { suspend: true });
  assert.deepEqual(await scene.pods(), []);
  const suspended = await scene.job();
  assert.deepEqual([suspended.status.failed, trueConditions(suspended)], [undefined, ['Suspended: JobSuspended']]);

  await scene.advance(3600);
  await patchJob(scene, { suspend: false });
  assert.equal((await scene.activePods()).length, 2);
  const resumed = await scene.job();
  assert.equal(Date.parse(resumed.status.startTime), Math.floor(scene.clock.now() / 1000) * 1000);
  assert.deepEqual(trueConditions(resumed), []);
  await scene.advance(40);
  assert.equal((await scene.activePods()).length, 2);
  const eventsSoFar = (await scene.events()).filter((event) => /Suspended|Resumed/.test(event));
  assert.deepEqual(eventsSoFar, ['Normal Suspended Job suspended', 'Normal Resumed Job resumed']);
});

test('a Job that was created suspended has no start time', async (t) => {
  const scene = await startJobScene(t);
  await submitJob(scene, aJob({ suspend: true }));
  const { status } = await scene.job();
  assert.equal(status.startTime, undefined);
  assert.deepEqual(await scene.pods(), []);
});

const onExitCode = (action: string, code: number) => ({
  rules: [{ action, onExitCodes: { containerName: 'main', operator: 'In', values: [code] } }],
});

test('podFailurePolicy FailJob ends the Job at once', async (t) => {
  const scene = await startJobScene(t);
  await submitJob(scene, aJob({ parallelism: 2, completions: 2, podFailurePolicy: onExitCode('FailJob', 42) }));
  const [pod] = await scene.activePods();
  await scene.node.fail(pod, 42);
  await scene.settle();
  const job = await scene.job();
  assert.deepEqual(trueConditions(job), failedConditions('PodFailurePolicy'));
  const message = `Container main for pod default/${pod.metadata.name} failed with exit code 42 matching FailJob rule at index 0`;
  assert.equal(job.status.conditions.at(-1).message, message);
  assert.deepEqual([job.status.failed, await scene.activePods()], [2, []]);
});

test('podFailurePolicy Ignore replaces a disrupted pod without counting it', async (t) => {
  const scene = await startJobScene(t);
  const rules = [{ action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget' }] }];
  await submitJob(scene, aJob({ backoffLimit: 0, podFailurePolicy: { rules } }));
  const [pod] = await scene.activePods();
  await scene.node.fail(pod, 137, { conditions: [{ type: 'DisruptionTarget', status: 'True' }] });
  await scene.settle();
  await scene.advance(10);
  const { status } = await scene.job();
  assert.deepEqual([status.failed, status.active], [undefined, 1]);
});

for (const [policy, replacements] of [
  ['TerminatingOrFailed', 1],
  ['Failed', 0],
] as const) {
  test(`podReplacementPolicy ${policy}: a terminating pod has ${replacements} replacements`, async (t) => {
    const scene = await startJobScene(t);
    const metadata = { finalizers: ['example.com/hold'] };
    await submitJob(scene, aJob({ podReplacementPolicy: policy }, { metadata }));
    const [pod] = await scene.activePods();
    await scene.api.ok('DELETE', `${PODS}/${pod.metadata.name}`);
    await scene.settle();
    await scene.advance(10);
    const { status } = await scene.job();
    assert.deepEqual([status.terminating, status.active ?? 0], [1, replacements]);
    assert.equal(status.failed ?? 0, replacements);
  });
}

test('an Indexed Job runs each index once', async (t) => {
  const scene = await startJobScene(t);
  await submitJob(scene, aJob({ completionMode: 'Indexed', parallelism: 3, completions: 3 }));
  const pods = await scene.activePods();
  const key = 'batch.kubernetes.io/job-completion-index';
  const seen = pods.map(({ metadata, spec }) => [metadata.annotations[key], metadata.labels[key], spec.hostname]);
  assert.deepEqual(
    seen.sort(([a], [b]) => a - b),
    [
      ['0', '0', 'work-0'],
      ['1', '1', 'work-1'],
      ['2', '2', 'work-2'],
    ],
  );
  for (const { metadata, spec } of pods) {
    assert.match(metadata.name, new RegExp(`^work-${metadata.annotations[key]}-[a-z0-9]{5}$`));
    const [{ name, valueFrom }] = spec.containers[0].env;
    assert.deepEqual([name, valueFrom.fieldRef.fieldPath], ['JOB_COMPLETION_INDEX', `metadata.labels['${key}']`]);
  }
  const indexed = (index: string) => pods.find(({ metadata }) => metadata.annotations[key] === index);
  await scene.node.succeed(indexed('0'));
  await scene.node.succeed(indexed('2'));
  await scene.node.fail(indexed('1'));
  await scene.settle();
  assert.equal((await scene.job()).status.completedIndexes, '0,2');
  await scene.advance(10);
  const [again] = await scene.activePods();
  assert.equal(again.metadata.annotations[key], '1');
  await scene.node.succeed(again);
  await scene.settle();
  const job = await scene.job();
  assert.deepEqual([job.status.completedIndexes, job.status.succeeded, job.status.failed], ['0-2', 3, 1]);
  assert.deepEqual(trueConditions(job), SUCCEEDED_CONDITIONS);
});

test('an index fails by its own limit, or at once by FailIndex, and the others continue', async (t) => {
  const scene = await startJobScene(t);
  const spec = { completionMode: 'Indexed', parallelism: 3, completions: 3, backoffLimitPerIndex: 1 };
  await submitJob(scene, aJob({ ...spec, podFailurePolicy: onExitCode('FailIndex', 7) }));
  const key = 'batch.kubernetes.io/job-completion-index';
  const count = 'batch.kubernetes.io/job-index-failure-count';
  const byIndex = async (index: string) =>
    (await scene.activePods()).find(({ metadata }) => metadata.annotations[key] === index);
  await scene.node.fail(await byIndex('0'), 1);
  await scene.node.fail(await byIndex('1'), 7);
  await scene.settle();
  assert.equal((await scene.job()).status.failedIndexes, '1');
  await scene.advance(10);
  const second = await byIndex('0');
  assert.equal(second.metadata.annotations[count], '1', 'the new pod contains the previous failure');
  await scene.node.fail(second, 1);
  await scene.settle();
  assert.equal((await scene.job()).status.failedIndexes, '0,1');
  assert.deepEqual(trueConditions(await scene.job()), []);
  await scene.node.succeed(await byIndex('2'));
  await scene.settle();
  const job = await scene.job();
  assert.deepEqual(trueConditions(job), failedConditions('FailedIndexes'));
  assert.deepEqual([job.status.succeeded, job.status.failed, job.status.completedIndexes], [1, 3, '2']);
});

test('failures to create pods are reported and retried', async (t) => {
  let refused = 0;
  const scene = await startJobScene(t, ({ method, path }) => {
    if (method === 'POST' && path === PODS && refused++ < 3) throw new Error('exceeded quota');
  });
  await submitJob(scene, aJob());
  assert.match((await scene.events()).join(), /Warning FailedCreate .*exceeded quota/);
  assert.deepEqual(await scene.pods(), []);
  assert.equal((await scene.job()).status.active, undefined, 'pods that do not exist are not counted');
  await scene.advance(60);
  assert.equal((await scene.activePods()).length, 1);
});

test('with its own selector a Job adopts matching pods without a controller, and releases pods that no longer match', async (t) => {
  const scene = await startJobScene(t);
  const pod = (name: string) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app: 'x' } },
    spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'busybox' }] },
  });
  await scene.api.ok('POST', PODS, { body: pod('found') });
  const selector = { matchLabels: { app: 'x' } };
  const made = aJob({ manualSelector: true, selector }, { metadata: { labels: { app: 'x' } } });
  const { metadata } = await submitJob(scene, made);
  const [found, ...others] = await scene.pods();
  assert.deepEqual(others, [], 'the existing pod is enough');
  assert.deepEqual(
    found.metadata.ownerReferences.map(({ uid }: Loose) => uid),
    [metadata.uid],
  );
  assert.deepEqual(found.metadata.finalizers, ['batch.kubernetes.io/job-tracking']);

  await scene.api.ok('PATCH', `${PODS}/found`, { body: { metadata: { labels: { app: 'other' } } } });
  await scene.settle();
  const released = await scene.api.ok('GET', `${PODS}/found`);
  assert.deepEqual([released.metadata.ownerReferences, released.metadata.finalizers], [undefined, undefined]);
  assert.equal((await scene.activePods()).length, 2, 'another pod replaces it');
});

test('pods whose Job is deleted are released', async (t) => {
  const scene = await startJobScene(t);
  await submitJob(scene, aJob());
  await scene.api.ok('DELETE', `${JOBS}/work?propagationPolicy=Background`);
  await scene.settle();
  const [pod] = await scene.pods();
  assert.equal(pod.metadata.finalizers, undefined);
});

test('a Job that another controller manages is left alone', async (t) => {
  const scene = await startJobScene(t);
  await submitJob(scene, aJob({ managedBy: 'example.com/other' }));
  assert.deepEqual([await scene.pods(), (await scene.job()).status], [[], {}]);
});

test('a finished Job is deleted after its time to live, and not before', async (t) => {
  const scene = await startJobScene(t);
  await submitJob(scene, aJob({ ttlSecondsAfterFinished: 100 }));
  const [pod] = await scene.activePods();
  await scene.advance(200);
  await scene.node.succeed(pod);
  await scene.settle();
  await scene.advance(99);
  assert.equal((await scene.job()).metadata.deletionTimestamp, undefined);
  await scene.advance(1);
  const job = await scene.job();
  assert.ok(job.metadata.deletionTimestamp);
  assert.deepEqual(job.metadata.finalizers, ['foregroundDeletion'], 'its pods are deleted first');
});
