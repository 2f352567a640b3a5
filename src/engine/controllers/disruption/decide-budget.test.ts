/** Tests of the evictions that a budget allows. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decideBudget } from '#engine/controllers/disruption/decide-budget.ts';
import type { OwnerScale } from '#engine/controllers/disruption/expected-pods.ts';
import type { PodDisruptionBudget, BudgetStatus } from '#engine/controllers/disruption/kinds.ts';
import { LabelledPods } from '#engine/controllers/labelled-pods.ts';
import { decideMarkedPod } from '#engine/controllers/disruption/stale-disruption.ts';
import type { EnginePod } from '#engine/controllers/kinds.ts';
import { aPod, type PodOptions, stored } from '#engine/controllers/scheduler/testing/builders.ts';
import { parseLabelSelector } from '#kube/selectors/label-selector.ts';
import type { Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';

const NOW = 1_900_000_000_000;
const ago = (seconds: number) => timestamp(NOW - seconds * 1000);

const ready = (name: string, options: PodOptions = {}) =>
  aPod(name, { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] }, ...options });
const unready = (name: string) => aPod(name, { status: { phase: 'Running' } });
const three = (options: PodOptions = {}) => ['a', 'b', 'c'].map((name) => ready(name, options));

interface Case {
  readonly spec: PodDisruptionBudget['spec'];
  readonly status?: BudgetStatus;
  readonly pods?: Stored<EnginePod>[];
  readonly scales?: Record<string, OwnerScale>;
  /** The counts: expected, desired, healthy, allowed. */
  readonly want?: [number, number, number, number];
  readonly reason: string;
  readonly message?: string;
  readonly disrupted?: string[];
  readonly events?: string[];
  readonly again?: number;
}

const OWNED = { owner: 'set' };
const FIVE = { 'uid-set': { replicas: 5 } };
const NO_SCALE: Record<string, OwnerScale> = { 'uid-set': { is: 'none', resource: 'jobs.batch' } };

const cases: Record<string, Case> = {
  'allows evictions if more pods are healthy than needed': {
    spec: { minAvailable: 2 },
    pods: three(),
    want: [3, 2, 3, 1],
    reason: 'SufficientPods',
  },
  'allows none if just enough pods are healthy': {
    spec: { minAvailable: 3 },
    pods: three(),
    want: [3, 3, 3, 0],
    reason: 'InsufficientPods',
  },
  'allows none if too few pods are healthy': {
    spec: { minAvailable: 5 },
    pods: three(),
    want: [3, 5, 3, 0],
    reason: 'InsufficientPods',
  },
  'pods that are not ready do not count': {
    spec: { minAvailable: 1 },
    pods: [ready('a'), unready('b'), ready('c', { metadata: { deletionTimestamp: ago(1) } })],
    want: [3, 1, 1, 0],
    reason: 'InsufficientPods',
  },
  'allows none without pods': {
    spec: { minAvailable: 0 },
    want: [0, 0, 0, 0],
    reason: 'InsufficientPods',
    events: ['NoPods'],
  },
  'allows none without minAvailable and maxUnavailable': {
    spec: {},
    pods: three(),
    want: [0, 0, 3, 0],
    reason: 'InsufficientPods',
  },
  "computes a percentage of the owner's scale": {
    spec: { minAvailable: '50%' },
    pods: three(OWNED),
    scales: FIVE,
    want: [5, 3, 3, 0],
    reason: 'InsufficientPods',
  },
  'allows one pod to be unavailable': {
    spec: { maxUnavailable: 1 },
    pods: three(OWNED),
    scales: { 'uid-set': { replicas: 3 } },
    want: [3, 2, 3, 1],
    reason: 'SufficientPods',
  },
  'rounds a percentage of unavailable pods up': {
    spec: { maxUnavailable: '30%' },
    pods: three(OWNED),
    scales: FIVE,
    want: [5, 3, 3, 0],
    reason: 'InsufficientPods',
  },
  'allows all pods to be unavailable': {
    spec: { maxUnavailable: 9 },
    pods: three(OWNED),
    scales: FIVE,
    want: [5, 0, 3, 3],
    reason: 'SufficientPods',
  },
  'adds the scales of several owners': {
    spec: { maxUnavailable: 1 },
    pods: [ready('a', OWNED), ready('b', { owner: 'other' })],
    scales: { ...FIVE, 'uid-other': { replicas: 2 } },
    want: [7, 6, 2, 0],
    reason: 'InsufficientPods',
  },
  'counts the pods of an owner without scale': {
    spec: { maxUnavailable: 1 },
    pods: three(OWNED),
    scales: NO_SCALE,
    want: [3, 2, 3, 1],
    reason: 'SufficientPods',
  },
  'fails for a percentage if the owner has no scale': {
    spec: { maxUnavailable: '50%' },
    pods: three(OWNED),
    scales: NO_SCALE,
    status: { currentHealthy: 3, desiredHealthy: 1, expectedPods: 3, disruptionsAllowed: 2, observedGeneration: 1 },
    want: [3, 1, 3, 0],
    reason: 'SyncFailed',
    message: 'jobs.batch does not implement the scale subresource',
    events: ['CalculateExpectedPodCountFailed'],
  },
  'fails if the owner does not exist': {
    spec: { maxUnavailable: 1 },
    pods: three(OWNED),
    scales: { 'uid-set': { is: 'missing' } },
    want: [0, 0, 0, 0],
    reason: 'SyncFailed',
    message: 'found no controllers for pod "a"',
    events: ['CalculateExpectedPodCountFailed'],
  },
  'reports pods without an owner': {
    spec: { maxUnavailable: 1, selector: { matchLabels: { app: 'web' } } },
    pods: three(),
    want: [0, 0, 3, 0],
    reason: 'InsufficientPods',
    events: ['UnmanagedPods'],
  },
  'does not count a pod whose eviction was allowed': {
    spec: { minAvailable: 1 },
    pods: three(),
    status: { disruptedPods: { a: ago(30) } },
    want: [3, 1, 2, 1],
    reason: 'SufficientPods',
    disrupted: ['a'],
    again: 90_000,
  },
  'counts the pod again after two minutes': {
    spec: { minAvailable: 1 },
    pods: three(),
    status: { disruptedPods: { a: ago(120), b: ago(60) } },
    want: [3, 1, 2, 1],
    reason: 'SufficientPods',
    disrupted: ['b'],
    again: 60_000,
  },
  'forgets a pod that is deleted or under deletion': {
    spec: { minAvailable: 1 },
    pods: [ready('a', { metadata: { deletionTimestamp: ago(1) } }), ready('b'), ready('c')],
    status: { disruptedPods: { a: ago(5), gone: ago(5) } },
    want: [3, 1, 2, 1],
    reason: 'SufficientPods',
  },
};

for (const [sentence, { spec, status, pods = [], scales = {}, ...wanted }] of Object.entries(cases)) {
  test(`budget: ${sentence}`, () => {
    const object = { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', spec, status };
    const budget = stored(object, { name: 'web', namespace: 'default', generation: 1 });
    const world = { budget, pods, scales: new Map(Object.entries(scales)), nowMs: NOW };
    const plan = decideBudget(world);
    const next = plan.status as BudgetStatus;
    const { expectedPods = 0, desiredHealthy = 0, currentHealthy = 0, disruptionsAllowed = 0 } = next;
    assert.deepEqual([expectedPods, desiredHealthy, currentHealthy, disruptionsAllowed], wanted.want);
    const [condition] = next.conditions ?? [];
    assert.deepEqual([condition?.reason, condition?.message], [wanted.reason, wanted.message ?? '']);
    assert.equal(condition?.status, wanted.reason === 'SufficientPods' ? 'True' : 'False');
    assert.deepEqual(Object.keys(next.disruptedPods ?? {}), wanted.disrupted ?? []);
    assert.deepEqual(
      (plan.events ?? []).map(({ reason }) => reason),
      wanted.events ?? [],
    );
    assert.equal(plan.requeueAfterMs, wanted.again);

    const repeated = decideBudget({ ...world, budget: { ...budget, status: next }, nowMs: NOW });
    assert.deepEqual(repeated.status, plan.status, 'an unchanged status is not written again');
  });
}

const marked = (fields: object, options: PodOptions = {}) => {
  const condition = {
    type: 'DisruptionTarget',
    status: 'True',
    reason: 'EvictionByEvictionAPI',
    lastTransitionTime: ago(120),
    ...fields,
  };
  return aPod('p', { status: { phase: 'Running', conditions: [condition] }, ...options });
};

const stale: Record<string, { pod: Stored<EnginePod>; want: number; again?: number }> = {
  'resets a mark that is two minutes old': { pod: marked({}), want: 1 },
  'keeps a recent mark': { pod: marked({ lastTransitionTime: ago(20) }), want: 0, again: 100_000 },
  'keeps the mark of a pod under deletion': { pod: marked({}, { metadata: { deletionTimestamp: ago(5) } }), want: 0 },
  'keeps the mark of a node': { pod: marked({ reason: 'TerminationByKubelet' }), want: 0 },
  'ignores a mark with status False': { pod: marked({ status: 'False' }), want: 0 },
  'ignores a pod without a mark': { pod: ready('p'), want: 0 },
};

for (const [sentence, { pod, want, again }] of Object.entries(stale)) {
  test(`stale mark: ${sentence}`, () => {
    const { changes, requeueAfterMs } = decideMarkedPod({ pod, nowMs: NOW });
    assert.deepEqual([changes.length, requeueAfterMs], [want, again]);
  });
}

test('the label index follows every change', () => {
  const known = new Map<string, Stored<EnginePod>>();
  const labelled = new LabelledPods((key) => known.get(key));
  const put = (name: string, options?: PodOptions) => {
    const key = `default/${name}`;
    const old = known.get(key);
    const next = options && aPod(name, options);
    if (next === undefined) known.delete(key);
    else known.set(key, next);
    labelled.update(key, { old, new: next });
  };
  const select = (text: string) =>
    labelled.select('default', parseLabelSelector(text)).map(({ metadata }) => metadata.name);
  put('b', { labels: { app: 'web', tier: 'front' } });
  put('a', { labels: { app: 'web' } });
  put('c', { labels: { app: 'db' } });
  assert.deepEqual(select(''), ['a', 'b', 'c']);
  assert.deepEqual(select('app=web'), ['a', 'b']);
  assert.deepEqual(select('app=web,tier=front'), ['b']);
  assert.deepEqual(select('app in (web,db),tier!=front'), ['a', 'c']);
  put('a', { labels: { app: 'db' } });
  put('b');
  assert.deepEqual(select('app=web'), []);
  assert.deepEqual(select('app=db'), ['a', 'c']);
  assert.deepEqual(labelled.select('other', []), []);
});
