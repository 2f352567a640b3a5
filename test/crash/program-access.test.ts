/** Pods of our own program that call the API: the agent gives them a token of their service account, and removes it later. */
import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { NODE, PODS, startAgentScene } from '#test/support/agent-scene.ts';
import type { Loose } from '#test/support/test-api.ts';

const ACCOUNTS = '/api/v1/namespaces/default/serviceaccounts';

interface Started {
  readonly env: Readonly<Record<string, string>>;
  exit(code: number): void;
}

async function startScene(t: TestContext) {
  const dir = join(await mkdtemp(join(tmpdir(), 'program-access-')), 'pods');
  t.after(() => rm(join(dir, '..'), { recursive: true }));
  const started: Started[] = [];
  const agent = await startAgentScene(t, {
    programAccess: { dir, server: 'https://127.0.0.1:6443', certificateAuthority: 'PEM' },
    runProgram(_, env) {
      const { promise: exited, resolve: exit } = Promise.withResolvers<number>();
      started.push({ env, exit });
      return { exited, onOutput: () => undefined, kill: () => exit(137) };
    },
  });
  const submit = async (name: string, spec: Loose = {}, container: Loose = {}) => {
    const containers = [{ name: 'main', image: 'selfsame/selfsame:1', args: ['update-machine-types'], ...container }];
    const body = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, labels: { 'batch.kubernetes.io/job-name': 'j' } },
      spec: { nodeName: NODE, restartPolicy: 'OnFailure', serviceAccountName: 'worker', containers, ...spec },
    };
    await agent.api.ok('POST', PODS, { body });
    await agent.settle();
  };
  await agent.api.ok('POST', ACCOUNTS, {
    body: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'worker' } },
  });
  const reviewToken = async (token: string): Promise<Loose> => {
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } };
    return (await agent.api.ok('POST', '/apis/authentication.k8s.io/v1/tokenreviews', { body })).status;
  };
  const directories = () => readdir(dir).catch(() => []);
  return { ...agent, started, submit, reviewToken, directories };
}

test('the program has the token of its service account until its pod is deleted', async (t) => {
  const { api, settle, started, submit, reviewToken, directories } = await startScene(t);
  const fieldRef = { fieldPath: "metadata.labels['batch.kubernetes.io/job-name']" };
  await submit('p', {}, { env: [{ name: 'JOB_NAME', valueFrom: { fieldRef } }] });
  const { env } = started[0]!;
  assert.equal(env['JOB_NAME'], 'j');
  assert.equal(env['SELFSAME_API_SERVER'], 'https://127.0.0.1:6443');
  assert.equal(await readFile(env['SELFSAME_CA_FILE']!, 'utf8'), 'PEM');
  const token = await readFile(env['SELFSAME_TOKEN_FILE']!, 'utf8');
  const { authenticated, user } = await reviewToken(token);
  assert.deepEqual([authenticated, user.username], [true, 'system:serviceaccount:default:worker']);
  assert.deepEqual(user.extra['authentication.kubernetes.io/pod-name'], ['p']);

  await api.ok('DELETE', `${PODS}/p?gracePeriodSeconds=0`);
  await settle();
  assert.deepEqual(await directories(), []);
  assert.notEqual((await reviewToken(token)).authenticated, true);
});

test('between two runs there is no token, and the next run has a new one', async (t) => {
  const { advance, settle, started, submit, directories } = await startScene(t);
  await submit('p');
  const tokenOf = (run: number) => readFile(started[run]!.env['SELFSAME_TOKEN_FILE']!, 'utf8');
  const first = await tokenOf(0);
  started[0]!.exit(1);
  await settle();
  assert.equal(started.length, 2, 'the first retry is immediate');
  assert.notEqual(await tokenOf(1), first);
  started[1]!.exit(1);
  await settle();
  assert.deepEqual(await directories(), []);
  await advance(10);
  assert.equal(started.length, 3);
  assert.ok(await tokenOf(2));
  started[2]!.exit(0);
  await settle();
  assert.deepEqual(await directories(), []);
});

test('the next agent removes the token of the previous one', async (t) => {
  const { restart, pod, started, submit, directories } = await startScene(t);
  await submit('p');
  await restart();
  assert.equal(started.length, 2);
  const [{ restartCount, lastState }] = (await pod('p')).status.containerStatuses;
  assert.deepEqual([restartCount, lastState.terminated.exitCode], [1, 137], 'Jobs count the failures of their pods');
  assert.equal((await directories()).length, 1);
  assert.ok(await readFile(started[1]!.env['SELFSAME_TOKEN_FILE']!, 'utf8'));
});

test('restarts are counted across agents', async (t) => {
  const { advance, restart, pod, settle, started, submit } = await startScene(t);
  await submit('p');
  const restarts = async () => (await pod('p')).status.containerStatuses[0].restartCount;
  started[0]!.exit(1);
  await advance(10);
  assert.equal(await restarts(), 1);
  started[1]!.exit(1);
  await settle();
  assert.equal(await restarts(), 1);
  await restart();
  assert.deepEqual([await restarts(), started.length], [2, 3]);
  started[2]!.exit(0);
  await settle();
  assert.deepEqual([await restarts(), (await pod('p')).status.phase], [2, 'Succeeded']);
});

test('a pod that ran stays Running when the next agent cannot get a token', async (t) => {
  const { api, advance, restart, pod, started, submit } = await startScene(t);
  await submit('p');
  await api.ok('DELETE', `${ACCOUNTS}/worker`);
  await restart();
  const { phase, containerStatuses } = (await pod('p')).status;
  assert.deepEqual([started.length, phase], [1, 'Running']);
  assert.equal(containerStatuses[0].state.waiting.reason, 'CreateContainerConfigError');
  assert.equal(containerStatuses[0].lastState.terminated.exitCode, 137);
  await api.ok('POST', ACCOUNTS, {
    body: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'worker' } },
  });
  await advance(10);
  assert.equal(started.length, 2);
  assert.equal((await pod('p')).status.containerStatuses[0].restartCount, 1);
});

const without: Record<string, { spec?: Loose; container?: Loose }> = {
  'the pod disables it': { spec: { automountServiceAccountToken: false } },
  'the command does not call the API': { container: { args: ['version'] } },
};

for (const [name, { spec, container }] of Object.entries(without)) {
  test(`no token if ${name}`, async (t) => {
    const { started, submit, directories } = await startScene(t);
    await submit('p', spec, container);
    assert.deepEqual(started[0]!.env, {});
    assert.deepEqual(await directories(), []);
  });
}

test('a pod whose account is missing waits, reports why, and starts when the account exists', async (t) => {
  const { api, advance, pod, settle, started, submit } = await startScene(t);
  const account = await api.ok('GET', `${ACCOUNTS}/worker`);
  // Bound by hand, so that the account can be deleted before the pod starts.
  await submit('p', { nodeName: undefined, schedulerName: 'nobody' });
  await api.ok('DELETE', `${ACCOUNTS}/worker`);
  const target = { apiVersion: 'v1', kind: 'Node', name: NODE };
  const body = { apiVersion: 'v1', kind: 'Binding', metadata: { name: 'p' }, target };
  await api.ok('POST', `${PODS}/p/binding`, { body });
  await settle();
  assert.equal(started.length, 0);
  const { state } = (await pod('p')).status.containerStatuses[0];
  assert.equal(state.waiting.reason, 'CreateContainerConfigError');
  assert.match(state.waiting.message, /serviceaccounts "worker" not found/);

  const { name, namespace } = account.metadata;
  await api.ok('POST', ACCOUNTS, { body: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } } });
  await advance(10);
  assert.equal(started.length, 1);
  assert.equal((await pod('p')).status.phase, 'Running');
});

const refused: Record<string, { container: Loose; want: RegExp }> = {
  'another token file': {
    container: { env: [{ name: 'SELFSAME_TOKEN_FILE', value: '/etc/shadow' }] },
    want: /"SELFSAME_TOKEN_FILE", which is reserved for the node/,
  },
  'another server': {
    container: { env: [{ name: 'SELFSAME_API_SERVER', value: 'https://evil' }] },
    want: /"SELFSAME_API_SERVER", which is reserved for the node/,
  },
  'more arguments': {
    container: { args: ['update-machine-types', '--kubeconfig=/root/.kube/config'] },
    want: /the argument "--kubeconfig/,
  },
  'a variable from a secret': {
    container: { env: [{ name: 'JOB_X', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }] },
    want: /"JOB_X" with an unsupported source/,
  },
};

for (const [name, { container, want }] of Object.entries(refused)) {
  test(`refused: ${name}`, async (t) => {
    const { pod, started, submit } = await startScene(t);
    await submit('p', {}, container);
    const { phase, message } = (await pod('p')).status;
    assert.equal(phase, 'Failed');
    assert.match(message, want);
    assert.equal(started.length, 0);
  });
}
