import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RbacClusterRole, RbacRule } from '#engine/auth/rbac/policy.ts';
import { decideAggregation } from '#engine/controllers/rbac/cluster-role-aggregation.ts';
import type { LabelSelector } from '#kube/selectors/label-selector.ts';
import type { Stored } from '#kube/meta.ts';

const reads = (...resources: string[]): RbacRule => ({ apiGroups: [''], resources, verbs: ['get'] });

function role(name: string, labels: Record<string, string>, rules?: RbacRule[] | null): Stored<RbacClusterRole> {
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name, labels, uid: `uid-${name}`, resourceVersion: '1', creationTimestamp: '' },
    rules,
  };
}

function sum(rules: RbacRule[] | null, ...clusterRoleSelectors: LabelSelector[]): Stored<RbacClusterRole> {
  return { ...role('sum', { to: 'view' }, rules), aggregationRule: { clusterRoleSelectors } };
}

const VIEW: LabelSelector = { matchLabels: { to: 'view' } };
const EDIT: LabelSelector = { matchExpressions: [{ key: 'to', operator: 'In', values: ['edit'] }] };

/** `want` undefined = the role is not changed. */
const cases: Record<
  string,
  { sum: Stored<RbacClusterRole>; others: Stored<RbacClusterRole>[]; want: RbacRule[] | undefined }
> = {
  'collects the rules of the selected roles in the order of their names': {
    sum: sum(null, VIEW),
    others: [
      role('b', { to: 'view' }, [reads('b')]),
      role('a', { to: 'view' }, [reads('a')]),
      role('c', {}, [reads('c')]),
    ],
    want: [reads('a'), reads('b')],
  },
  'collects selector by selector': {
    sum: sum([], EDIT, VIEW),
    others: [role('a', { to: 'view' }, [reads('a')]), role('b', { to: 'edit' }, [reads('b')])],
    want: [reads('b'), reads('a')],
  },
  'lists no rule twice': {
    sum: sum([], VIEW),
    others: [role('a', { to: 'view' }, [reads('x'), reads('y')]), role('b', { to: 'view' }, [reads('x')])],
    want: [reads('x'), reads('y')],
  },
  'does not include its own rules': { sum: sum([reads('old')], VIEW), others: [], want: [] },
  'removes the rules of roles that are no longer selected': {
    sum: sum([reads('a'), reads('b')], VIEW),
    others: [role('a', { to: 'view' }, [reads('a')])],
    want: [reads('a')],
  },
  'keeps correct rules': {
    sum: sum([reads('a')], VIEW),
    others: [role('a', { to: 'view' }, [reads('a')])],
    want: undefined,
  },
  'accepts roles without rules': {
    sum: sum(null, VIEW),
    others: [role('a', { to: 'view' }, null), role('b', { to: 'view' })],
    want: undefined,
  },
  'does not change a role without an aggregationRule': {
    sum: role('sum', {}, [reads('a')]),
    others: [role('a', { to: 'view' }, [reads('b')])],
    want: undefined,
  },
};

for (const [name, { sum: subject, others, want }] of Object.entries(cases)) {
  test(`aggregation: ${name}`, () => {
    const { changes } = decideAggregation({ role: subject, all: [subject, ...others] });
    const patches = changes.map((change) => change.do === 'patch' && [change.uid, change.patch]);
    const expected = want === undefined ? [] : [['uid-sum', { type: 'merge', body: { rules: want } }]];
    assert.deepEqual(patches, expected);
  });
}
