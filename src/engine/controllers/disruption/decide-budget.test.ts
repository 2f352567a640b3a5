/** What a budget allows. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decideBudget } from '#engine/controllers/disruption/decide-budget.ts';
import type { OwnerScale } from '#engine/controllers/disruption/expected-pods.ts';
import type { PodDisruptionBudget, BudgetStatus } from '#engine/controllers/disruption/kinds.ts';
import { LabelledPods } from '#engine/controllers/disruption/labelled-pods.ts';
import { decideMarkedPod } from '#engine/controllers/disruption/stale-disruption.ts';
import type { EnginePod } from '#engine/controllers/kinds.ts';
import { aPod, type PodOptions, stored } from '#engine/controllers/scheduler/testing/builders.ts';
import { parseLabelSelector } from '#kube/label-selector.ts';
import type { Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';

const NOW = 1_900_000_000_000;
const ago = (seconds: number) => timestamp(NOW - seconds * 1000);

const ready = (name: string, wish: PodOptions = {}) =>
  aPod(name, { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] }, ...wish });
const unready = (name: string) => aPod(name, { status: { phase: 'Running' } });
const three = (wish: PodOptions = {}) => ['a', 'b', 'c'].map((name) => ready(name, wish));

interface Case {
  readonly spec: PodDisruptionBudget['spec'];
  readonly status?: BudgetStatus;
  readonly pods?: Stored<EnginePod>[];
  readonly scales?: Record<string, OwnerScale>;
  /** expected, desired, healthy, allowed. */
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
  'more than needed': { spec: { minAvailable: 2 }, pods: three(), want: [3, 2, 3, 1], reason: 'SufficientPods' },
  'just enough': { spec: { minAvailable: 3 }, pods: three(), want: [3, 3, 3, 0], reason: 'InsufficientPods' },
  'too few': { spec: { minAvailable: 5 }, pods: three(), want: [3, 5, 3, 0], reason: 'InsufficientPods' },
  'pods that are not ready do not count': {
    spec: { minAvailable: 1 },
    pods: [ready('a'), unready('b'), ready('c', { metadata: { deletionTimestamp: ago(1) } })],
    want: [3, 1, 1, 0],
    reason: 'InsufficientPods',
  },
  'no pods': {
    spec: { minAvailable: 0 },
    want: [0, 0, 0, 0],
    reason: 'InsufficientPods',
    events: ['NoPods'],
  },
  'nothing said': { spec: {}, pods: three(), want: [0, 0, 3, 0], reason: 'InsufficientPods' },
  'a share of what the owner wants': {
    spec: { minAvailable: '50%' },
    pods: three(OWNED),
    scales: FIVE,
    want: [5, 3, 3, 0],
    reason: 'InsufficientPods',
  },
  'at most one away': {
    spec: { maxUnavailable: 1 },
    pods: three(OWNED),
    scales: { 'uid-set': { replicas: 3 } },
    want: [3, 2, 3, 1],
    reason: 'SufficientPods',
  },
  'at most a share away, rounded up': {
    spec: { maxUnavailable: '30%' },
    pods: three(OWNED),
    scales: FIVE,
    want: [5, 3, 3, 0],
    reason: 'InsufficientPods',
  },
  'more may be away than there are': {
    spec: { maxUnavailable: 9 },
    pods: three(OWNED),
    scales: FIVE,
    want: [5, 0, 3, 3],
    reason: 'SufficientPods',
  },
  'several owners add up': {
    spec: { maxUnavailable: 1 },
    pods: [ready('a', OWNED), ready('b', { owner: 'other' })],
    scales: { ...FIVE, 'uid-other': { replicas: 2 } },
    want: [7, 6, 2, 0],
    reason: 'InsufficientPods',
  },
  'an owner without scale counts with its pods': {
    spec: { maxUnavailable: 1 },
    pods: three(OWNED),
    scales: NO_SCALE,
    want: [3, 2, 3, 1],
    reason: 'SufficientPods',
  },
  'but not for a share': {
    spec: { maxUnavailable: '50%' },
    pods: three(OWNED),
    scales: NO_SCALE,
    status: { currentHealthy: 3, desiredHealthy: 1, expectedPods: 3, disruptionsAllowed: 2, observedGeneration: 1 },
    want: [3, 1, 3, 0],
    reason: 'SyncFailed',
    message: 'jobs.batch does not implement the scale subresource',
    events: ['CalculateExpectedPodCountFailed'],
  },
  'an owner that is gone': {
    spec: { maxUnavailable: 1 },
    pods: three(OWNED),
    scales: { 'uid-set': { is: 'missing' } },
    want: [0, 0, 0, 0],
    reason: 'SyncFailed',
    message: 'found no controllers for pod "a"',
    events: ['CalculateExpectedPodCountFailed'],
  },
  'pods without an owner': {
    spec: { maxUnavailable: 1, selector: { matchLabels: { app: 'web' } } },
    pods: three(),
    want: [0, 0, 3, 0],
    reason: 'InsufficientPods',
    events: ['UnmanagedPods'],
  },
  'a pod that is being evicted does not count': {
    spec: { minAvailable: 1 },
    pods: three(),
    status: { disruptedPods: { a: ago(30) } },
    want: [3, 1, 2, 1],
    reason: 'SufficientPods',
    disrupted: ['a'],
    again: 90_000,
  },
  'until two minutes went by': {
    spec: { minAvailable: 1 },
    pods: three(),
    status: { disruptedPods: { a: ago(120), b: ago(60) } },
    want: [3, 1, 2, 1],
    reason: 'SufficientPods',
    disrupted: ['b'],
    again: 60_000,
  },
  'or it is under deletion or gone': {
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

    const settled = decideBudget({ ...world, budget: { ...budget, status: next }, nowMs: NOW });
    assert.deepEqual(settled.status, plan.status, 'what stands is not written again');
  });
}

const marked = (fields: object, wish: PodOptions = {}) => {
  const condition = {
    type: 'DisruptionTarget',
    status: 'True',
    reason: 'EvictionByEvictionAPI',
    lastTransitionTime: ago(120),
    ...fields,
  };
  return aPod('p', { status: { phase: 'Running', conditions: [condition] }, ...wish });
};

const stale: Record<string, { pod: Stored<EnginePod>; want: number; again?: number }> = {
  'marked two minutes ago': { pod: marked({}), want: 1 },
  'marked just now': { pod: marked({ lastTransitionTime: ago(20) }), want: 0, again: 100_000 },
  'on its way': { pod: marked({}, { metadata: { deletionTimestamp: ago(5) } }), want: 0 },
  'marked by its node': { pod: marked({ reason: 'TerminationByKubelet' }), want: 0 },
  'not marked any more': { pod: marked({ status: 'False' }), want: 0 },
  'not marked': { pod: ready('p'), want: 0 },
};

for (const [sentence, { pod, want, again }] of Object.entries(stale)) {
  test(`stale mark: ${sentence}`, () => {
    const { changes, requeueAfterMs } = decideMarkedPod({ pod, nowMs: NOW });
    assert.deepEqual([changes.length, requeueAfterMs], [want, again]);
  });
}

test('pods by label follow every change', () => {
  const known = new Map<string, Stored<EnginePod>>();
  const labelled = new LabelledPods((key) => known.get(key));
  const put = (name: string, wish?: PodOptions) => {
    const key = `default/${name}`;
    const old = known.get(key);
    const next = wish && aPod(name, wish);
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
