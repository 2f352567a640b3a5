import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decideNamespace, type Content } from '#engine/controllers/namespace.ts';
import type { Namespace } from '#engine/controllers/kinds.ts';
import type { Remaining } from '#engine/controllers/namespace-conditions.ts';
import type { Condition } from '#kube/conditions.ts';
import type { Stored } from '#kube/meta.ts';

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

function pod(name: string, metadata: object = {}): Content {
  const type = { group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true };
  return { type, object: { apiVersion: 'v1', kind: 'Pod', metadata: stored(name, { namespace: 'ns', ...metadata }) } };
}

const remaining = (resources: Record<string, number>, finalizers: Record<string, number> = {}): Remaining => ({
  resources: new Map(Object.entries(resources)),
  finalizers: new Map(Object.entries(finalizers)),
});
const NONE = remaining({});

interface Case {
  readonly namespace: Stored<Namespace>;
  readonly content?: Content[];
  readonly empty?: boolean;
  readonly remaining?: Remaining | 'unknown';
  readonly want: string[];
  readonly again?: boolean;
  /** Types of conditions that are True; absent = the status is left alone. */
  readonly standing?: string[];
}

const cases: Record<string, Case> = {
  'leaves a living namespace alone': { namespace: namespace({}), content: [pod('a')], want: [] },
  'deletes what is in it': {
    namespace: namespace(DELETING),
    content: [pod('a'), pod('b')],
    want: ['delete a', 'delete b'],
    again: true,
    standing: [],
  },
  'waits for what is held by finalizers, and says so': {
    namespace: namespace(DELETING),
    empty: false,
    remaining: remaining({ 'pods.': 1 }, { 'example.com/hold': 1 }),
    want: [],
    again: true,
    standing: ['NamespaceContentRemaining', 'NamespaceFinalizersRemaining'],
  },
  'waits for what has its grace period': {
    namespace: namespace(DELETING),
    empty: false,
    remaining: remaining({ 'pods.': 1 }),
    want: [],
    again: true,
    standing: ['NamespaceContentRemaining'],
  },
  'says nothing while there is more than it has seen': {
    namespace: namespace(DELETING),
    content: [pod('a')],
    remaining: 'unknown',
    want: ['delete a'],
    again: true,
  },
  'lets go of an empty one': { namespace: namespace(DELETING), want: ['patch ns'], standing: [] },
  'leaves the finalizers of others': {
    namespace: namespace(DELETING, ['example.com/mine']),
    want: [],
    standing: [],
  },
};

for (const [name, { namespace: subject, content = [], want, again = false, standing, ...rest }] of Object.entries(
  cases,
)) {
  test(name, () => {
    const { empty = content.length === 0, remaining: left = NONE } = rest;
    const world = { namespace: subject, content, empty, remaining: left === 'unknown' ? undefined : left, now: NOW };
    const plan = decideNamespace(world);
    const told = plan.changes.map((change) => `${change.do} ${change.do === 'create' ? '' : change.name.name}`);
    assert.deepEqual(told, want);
    assert.equal(plan.requeueAfterMs !== undefined, again);
    const conditions = plan.status?.['conditions'] as Condition[] | undefined;
    assert.deepEqual(
      conditions?.filter(({ status }) => status === 'True').map(({ type }) => type),
      standing,
    );
  });
}

test('the conditions are those of Kubernetes, and others stay', () => {
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
  const left = remaining({ 'pods.': 2, 'gadgets.golden.local': 1 }, { 'b.example/x': 3, 'a.example/y': 1 });
  const { status } = decideNamespace({ namespace: subject, content: [], empty: false, remaining: left, now: NOW });
  const told = (status!['conditions'] as Condition[]).map(
    ({ type, status: is, reason, message, lastTransitionTime }) => [type, is, reason, message, lastTransitionTime],
  );
  assert.equal(status!['phase'], 'Terminating');
  assert.deepEqual(told, [
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
