/** Ownership of pods when the controllers know less than the API, and Jobs with the accounts of their controllers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  aJob,
  JOBS,
  PODS,
  startJobScene,
  trueConditions,
  submitJob,
  SUCCEEDED_CONDITIONS,
} from '#test/support/job-scene.ts';
import { startTestApi, type Loose } from '#test/support/test-api.ts';

const ORPHANED = { metadata: { ownerReferences: null } };
const ownershipOf = ({ metadata }: Loose) => [
  metadata.ownerReferences,
  metadata.deletionTimestamp,
  metadata.finalizers,
];

test('pods that a Job orphaned are not adopted by a controller that has not seen the deletion yet', async (t) => {
  const scene = await startJobScene(t);
  await submitJob(scene, aJob());
  const [pod] = await scene.activePods();
  await scene.node.run(pod);
  await scene.settle();
  const releaseJobs = scene.holdJobs();
  await scene.api.ok('DELETE', `${JOBS}/work?propagationPolicy=Orphan`);
  // As the garbage collector does.
  await scene.api.ok('PATCH', `${PODS}/${pod.metadata.name}`, { body: ORPHANED });
  await scene.settle();
  assert.deepEqual((await scene.pods()).map(ownershipOf), [[undefined, undefined, undefined]]);
  await scene.api.ok('PATCH', `${JOBS}/work`, { body: { metadata: { finalizers: null } } });
  const touched = { metadata: { annotations: { touched: 'yes' } } };
  await scene.api.ok('PATCH', `${PODS}/${pod.metadata.name}`, { body: touched });
  await scene.settle();
  assert.deepEqual((await scene.pods()).map(ownershipOf), [[undefined, undefined, undefined]]);
  releaseJobs();
  await scene.settle();
  assert.deepEqual((await scene.pods()).map(ownershipOf), [[undefined, undefined, undefined]]);
});

test('pods that lost their owner are adopted again while the Job exists', async (t) => {
  const scene = await startJobScene(t);
  const { metadata } = await submitJob(scene, aJob());
  const [pod] = await scene.activePods();
  await scene.api.ok('PATCH', `${PODS}/${pod.metadata.name}`, { body: ORPHANED });
  await scene.settle();
  const [kept, ...others] = await scene.activePods();
  assert.deepEqual(others, []);
  assert.equal(kept.metadata.ownerReferences[0].uid, metadata.uid);
});

test('a pod whose Job no watch has delivered yet is not released', async (t) => {
  const scene = await startJobScene(t);
  const releaseJobs = scene.holdJobs();
  const { metadata } = await submitJob(scene, aJob());
  const made = podOf(metadata);
  await scene.api.ok('POST', PODS, { body: made });
  await scene.settle();
  const [pod] = await scene.pods();
  assert.deepEqual(pod.metadata.finalizers, made.metadata.finalizers);
  releaseJobs();
});

test('a pod of an earlier Job of the same name is released', async (t) => {
  const scene = await startJobScene(t);
  const { metadata } = await submitJob(scene, aJob({ suspend: true }));
  await scene.api.ok('DELETE', `${JOBS}/work?propagationPolicy=Background`);
  await submitJob(scene, aJob({ suspend: true }));
  await scene.api.ok('POST', PODS, { body: podOf(metadata) });
  await scene.settle();
  const [pod] = await scene.pods();
  assert.equal(pod.metadata.finalizers, undefined);
});

function podOf({ name, uid }: Loose): Loose {
  const ownerReferences = [{ apiVersion: 'batch/v1', kind: 'Job', name, uid, controller: true }];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'made-before', ownerReferences, finalizers: ['batch.kubernetes.io/job-tracking'] },
    spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'busybox' }] },
  };
}

test('with the accounts of the controllers a Job adopts pods, completes, and deletes its pods with it', async () => {
  const api = await startTestApi();
  const pods = async (): Promise<Loose[]> => (await api.ok('GET', PODS)).items;
  await api.settle();
  const selector = { matchLabels: { app: 'x' } };
  const metadata = { labels: { app: 'x' } };
  const spec = { restartPolicy: 'Never', containers: [{ name: 'main', image: 'busybox' }] };
  await api.ok('POST', PODS, {
    body: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'found', ...metadata }, spec },
  });
  const body = aJob({ completions: 2, parallelism: 2, manualSelector: true, selector }, { metadata });
  const { metadata: job } = await api.ok('POST', JOBS, { body });
  await api.settle();
  const owners = (await pods()).map((pod) => pod.metadata.ownerReferences?.[0].uid);
  assert.deepEqual(owners, [job.uid, job.uid], 'one was adopted, one was created');
  for (const pod of await pods()) {
    await api.ok('PATCH', `${PODS}/${pod.metadata.name}/status`, { body: { status: { phase: 'Succeeded' } } });
  }
  await api.settle();
  assert.deepEqual(trueConditions(await api.ok('GET', `${JOBS}/work`)), SUCCEEDED_CONDITIONS);
  await api.ok('DELETE', `${JOBS}/work?propagationPolicy=Background`);
  await api.settle();
  assert.deepEqual(await pods(), []);
  await api.stop();
});
