import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  AUTOUPDATE,
  rbacAccountSubject,
  defaultClusterRole,
  defaultClusterRoleBinding,
  rbacGroupSubject,
  resourceRule,
  rbacUserSubject,
} from '#engine/auth/rbac/defaults/build-policy.ts';
import type { RbacBinding, RbacClusterRole } from '#engine/auth/rbac/policy.ts';
import { repairBinding, repairRole } from '#engine/auth/rbac/reconcile.ts';
import { deepClone } from '#kube/deep.ts';

const GET_PODS = resourceRule(['get'], '', 'pods');
const LIST_PODS = resourceRule(['list'], '', 'pods');
const WANTED = defaultClusterRole('r', [resourceRule(['get', 'list'], '', 'pods')]);
const GATHERING = defaultClusterRole('g', [GET_PODS], { aggregates: 'to-g' });

/** More than the cost limit of one comparison: all of them together, and a single one. */
const MANY = Array.from({ length: 400 }, (_, i) => resourceRule(['get', 'list', 'watch'], '', `kind-${i}`));
const HUGE = { verbs: ['get'], nonResourceURLs: Array.from({ length: 200_000 }, (_, i) => `/p/${i}`) };

function changed<T>(value: T, change: (copy: T) => void): T {
  const copy = deepClone(value);
  change(copy);
  return copy;
}

/** Converts to JSON, without undefined values. Shortens long lists, which a failing test would print. */
const asJson = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (_, inner: unknown) =>
      Array.isArray(inner) && inner.length > 1000 ? `${inner.length} of them` : inner,
    ),
  );

const roles: Record<string, { present: RbacClusterRole; wanted?: RbacClusterRole; want: 'none' | RbacClusterRole }> = {
  'that is unchanged': { present: WANTED, want: 'none' },
  'with more permissions': { present: { ...WANTED, rules: [resourceRule(['*'], '*', '*')] }, want: 'none' },
  'without rules': { present: { ...WANTED, rules: null }, want: { ...WANTED, rules: [GET_PODS, LIST_PODS] } },
  'with some of its rules': {
    present: { ...WANTED, rules: [GET_PODS, resourceRule(['get'], '', 'own')] },
    want: { ...WANTED, rules: [GET_PODS, resourceRule(['get'], '', 'own'), LIST_PODS] },
  },
  'with so many rules that it takes long to compare them': {
    present: { ...WANTED, rules: [...MANY, GET_PODS] },
    want: { ...WANTED, rules: [...MANY, GET_PODS, LIST_PODS] },
    wanted: { ...WANTED, rules: [...WANTED.rules!, ...MANY] },
  },
  'too large to be compared, without a rule that it must have': {
    present: { ...WANTED, rules: [HUGE] },
    want: { ...WANTED, rules: [HUGE, ...WANTED.rules!] },
  },
  'too large to be compared, with the rule that it must have': {
    present: { ...WANTED, rules: [HUGE, ...WANTED.rules!] },
    want: 'none',
  },
  'with autoupdate disabled': {
    present: changed({ ...WANTED, rules: [] as RbacClusterRole['rules'] }, ({ metadata }) => {
      metadata.annotations = { [AUTOUPDATE]: 'false' };
    }),
    want: 'none',
  },
  'without its labels and annotations': {
    present: changed(WANTED, ({ metadata }) => {
      metadata.annotations = { own: 'x' };
      delete metadata.labels;
    }),
    want: changed(WANTED, ({ metadata }) => (metadata.annotations = { ...metadata.annotations, own: 'x' })),
  },
  'with another value of a label': {
    present: changed(WANTED, ({ metadata }) => (metadata.labels = { 'kubernetes.io/bootstrapping': 'mine' })),
    want: 'none',
  },
  'that aggregates other rules': {
    present: { ...GATHERING, rules: [LIST_PODS] },
    wanted: GATHERING,
    want: 'none',
  },
  'that no longer aggregates': {
    present: changed(GATHERING, (copy) => delete copy.aggregationRule),
    wanted: GATHERING,
    want: GATHERING,
  },
  'that aggregates but should not': {
    present: { ...WANTED, aggregationRule: { clusterRoleSelectors: [{}] } },
    want: { ...WANTED, aggregationRule: undefined },
  },
};

for (const [name, { present, wanted = WANTED, want }] of Object.entries(roles)) {
  test(`a default role ${name}`, () => {
    const repair = repairRole(present, wanted);
    assert.deepEqual(asJson(repair), asJson(want === 'none' ? 'none' : { update: want }));
  });
}

const BOUND = defaultClusterRoleBinding('b', rbacGroupSubject('g'), rbacAccountSubject('kube-system', 'robot'));

const bindings: Record<string, { present: RbacBinding; want: 'none' | 'recreate' | RbacBinding }> = {
  'that is unchanged': { present: BOUND, want: 'none' },
  'with more subjects': { present: { ...BOUND, subjects: [rbacUserSubject('x'), ...BOUND.subjects!] }, want: 'none' },
  'with other subjects': {
    present: { ...BOUND, subjects: [rbacUserSubject('x'), rbacGroupSubject('g')] },
    want: {
      ...BOUND,
      subjects: [rbacUserSubject('x'), rbacGroupSubject('g'), rbacAccountSubject('kube-system', 'robot')],
    },
  },
  'without subjects': { present: { ...BOUND, subjects: null }, want: BOUND },
  'of another role': { present: { ...BOUND, roleRef: { ...BOUND.roleRef, name: 'other' } }, want: 'recreate' },
  'with autoupdate disabled': {
    present: changed({ ...BOUND, subjects: [] as RbacBinding['subjects'] }, ({ metadata }) => {
      metadata.annotations = { [AUTOUPDATE]: 'false' };
    }),
    want: 'none',
  },
};

for (const [name, { present, want }] of Object.entries(bindings)) {
  test(`a default binding ${name}`, () => {
    assert.deepEqual(repairBinding(present, BOUND), typeof want === 'string' ? want : { update: want });
  });
}
