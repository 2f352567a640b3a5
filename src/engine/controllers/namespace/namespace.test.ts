import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  concludeNamespace,
  decideNamespace,
  type ContentItem,
  type NamespaceWorld,
} from '#engine/controllers/namespace/namespace.ts';
import type { Namespace } from '#engine/controllers/kinds.ts';
import type { Condition } from '#kube/conditions.ts';
import type { Stored } from '#kube/meta.ts';
import type { FailedChange } from '#runtime/plan.ts';

const NOW = '2026-01-01T00:01:00Z';
const stored = (name: string, metadata: object = {}) => ({
  name,
  uid: `uid-${name}`,
  resourceVersion: '1',
  creationTimestamp: '',
  ...metadata,
});
const DELETING = { deletionTimestamp: '2026-01-01T00:00:00Z' };

function namespace(metadata: object, finalizers: string[] = ['kubernetes']): Stored<Namespace> {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: stored('ns', metadata), spec: { finalizers } };
}

function pod(name: string, metadata: object = {}): ContentItem {
  const type = { group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true };
  return { type, object: { apiVersion: 'v1', kind: 'Pod', metadata: stored(name, { namespace: 'ns', ...metadata }) } };
}

type Counts = NamespaceWorld['counts'];

const counts = (resources: Record<string, number>, finalizers: Record<string, number> = {}): Counts => ({
  resources: new Map(Object.entries(resources)),
  finalizers: new Map(Object.entries(finalizers)),
});

interface Case {
  readonly namespace: Stored<Namespace>;
  readonly content?: ContentItem[];
  readonly counts?: Counts;
  readonly complete?: boolean;
  readonly unchangedRounds?: number;
  readonly want: string[];
  readonly againMs?: number;
  /** Types of conditions that are True after the plan; absent = the status is not written. */
  readonly trueConditions?: string[];
}

const cases: Record<string, Case> = {
  'does not change a namespace that is not under deletion': { namespace: namespace({}), content: [pod('a')], want: [] },
  'deletes the content': {
    namespace: namespace(DELETING),
    content: [pod('a'), pod('b')],
    want: ['delete a', 'delete b'],
    againMs: 500,
    trueConditions: [],
  },
  'waits for objects that are held by finalizers, and reports them': {
    namespace: namespace(DELETING),
    counts: counts({ 'pods.': 1 }, { 'example.com/hold': 1 }),
    want: [],
    againMs: 500,
    trueConditions: ['NamespaceContentRemaining', 'NamespaceFinalizersRemaining'],
  },
  'waits for objects in their grace period': {
    namespace: namespace(DELETING),
    counts: counts({ 'pods.': 1 }),
    want: [],
    againMs: 500,
    trueConditions: ['NamespaceContentRemaining'],
  },
  'waits longer while nothing is deleted': {
    namespace: namespace(DELETING),
    counts: counts({ 'pods.': 1 }),
    unchangedRounds: 2,
    want: [],
    againMs: 2000,
    trueConditions: ['NamespaceContentRemaining'],
  },
  'waits at most as long as Kubernetes': {
    namespace: namespace(DELETING),
    counts: counts({ 'pods.': 1 }),
    unchangedRounds: 1000,
    want: [],
    againMs: 15_000,
    trueConditions: ['NamespaceContentRemaining'],
  },
  'counts an object that is deleted now but held by a finalizer': {
    namespace: namespace(DELETING),
    content: [pod('a', { finalizers: ['example.com/hold'] })],
    want: ['delete a'],
    againMs: 500,
    trueConditions: ['NamespaceContentRemaining'],
  },
  'reports nothing before everything was listed': {
    namespace: namespace(DELETING),
    content: [pod('a')],
    complete: false,
    want: ['delete a'],
    againMs: 100,
  },
  'removes its finalizer from an empty namespace': {
    namespace: namespace(DELETING),
    want: ['patch ns'],
    trueConditions: [],
  },
  'keeps the finalizers of other controllers': {
    namespace: namespace(DELETING, ['example.com/mine']),
    want: [],
    trueConditions: [],
  },
};

for (const [name, { namespace: subject, content = [], want, againMs, trueConditions, ...rest }] of Object.entries(
  cases,
)) {
  test(name, () => {
    const found = counts(content.length === 0 ? {} : { 'pods.': content.length });
    const world = { namespace: subject, content, counts: found, complete: true, unchangedRounds: 0, now: NOW, ...rest };
    const plan = decideNamespace(world);
    const described = plan.changes.map((change) => `${change.do} ${change.do === 'create' ? '' : change.name.name}`);
    assert.deepEqual(described, want);
    assert.equal(plan.requeueAfterMs, againMs);
    const status = plan.continueOnError === true ? concludeNamespace(world, [], []) : plan.status;
    const conditions = status?.['conditions'] as Condition[] | undefined;
    assert.deepEqual(
      conditions?.filter(({ status }) => status === 'True').map(({ type }) => type),
      trueConditions,
    );
  });
}

test('sets the conditions of Kubernetes and keeps other conditions', () => {
  const subject = namespace(DELETING);
  const other: Condition = { type: 'Other', status: 'True', lastTransitionTime: 'then' };
  const before: Condition = {
    type: 'NamespaceContentRemaining',
    status: 'True',
    reason: 'SomeResourcesRemain',
    message: 'Some resources are remaining: pods. has 9 resource instances',
    lastTransitionTime: 'then',
  };
  subject.status = { phase: 'Terminating', conditions: [other, before] };
  const left = counts({ 'pods.': 2, 'gadgets.golden.local': 1 }, { 'b.example/x': 3, 'a.example/y': 1 });
  const world = { namespace: subject, content: [], counts: left, complete: true, unchangedRounds: 0, now: NOW };
  const status = concludeNamespace(world, [], []);
  const described = (status!['conditions'] as Condition[]).map(
    ({ type, status: is, reason, message, lastTransitionTime }) => [type, is, reason, message, lastTransitionTime],
  );
  assert.equal(status!['phase'], 'Terminating');
  assert.deepEqual(described, [
    ['Other', 'True', undefined, undefined, 'then'],
    [
      'NamespaceContentRemaining',
      'True',
      'SomeResourcesRemain',
      'Some resources are remaining: gadgets.golden.local has 1 resource instances, pods. has 2 resource instances',
      'then',
    ],
    ['NamespaceDeletionDiscoveryFailure', 'False', 'ResourcesDiscovered', 'All resources successfully discovered', NOW],
    [
      'NamespaceDeletionGroupVersionParsingFailure',
      'False',
      'ParsedGroupVersions',
      'All legacy kube types successfully parsed',
      NOW,
    ],
    [
      'NamespaceDeletionContentFailure',
      'False',
      'ContentDeleted',
      'All content successfully deleted, may be waiting on finalization',
      NOW,
    ],
    [
      'NamespaceFinalizersRemaining',
      'True',
      'SomeFinalizersRemain',
      'Some content in the namespace has finalizers remaining: a.example/y in 1 resource instances, b.example/x in 3 resource instances',
      NOW,
    ],
  ]);
});

test('reports refused deletions and counts their objects as remaining', () => {
  const content = ['a', 'b', 'c'].map((name) => pod(name));
  const world: NamespaceWorld = {
    namespace: namespace(DELETING),
    content,
    counts: counts({ 'pods.': 4, 'secrets.': 2 }),
    complete: true,
    unchangedRounds: 0,
    now: NOW,
  };
  const [, change] = decideNamespace(world).changes;
  const failures: FailedChange[] = [{ change: change!, error: new Error('b stays') }];
  const status = concludeNamespace(world, failures, ['b stays', 'secrets stay']);
  const conditionOf = (type: string) => {
    const found = (status!['conditions'] as Condition[]).find((condition) => condition.type === type)!;
    return [found.status, found.reason, found.message];
  };
  assert.deepEqual(conditionOf('NamespaceDeletionContentFailure'), [
    'True',
    'ContentDeletionFailed',
    'Failed to delete all resource types, 2 remaining: b stays, secrets stay',
  ]);
  assert.deepEqual(conditionOf('NamespaceContentRemaining'), [
    'True',
    'SomeResourcesRemain',
    'Some resources are remaining: pods. has 2 resource instances, secrets. has 2 resource instances',
  ]);
});
