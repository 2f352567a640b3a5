import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AuditRecord } from '#engine/audit/audit-record.ts';
import { aRecord } from '#engine/audit/testing/a-record.ts';
import { filterByLevel, isAudited, isRoutineSystemTraffic } from '#engine/audit/audited-requests.ts';

const audited: Record<string, { verb: string; code: number; isReview?: boolean; want: boolean }> = {
  'a successful write': { verb: 'create', code: 201, want: true },
  'a deleted collection': { verb: 'deletecollection', code: 200, want: true },
  'a write to a plain path': { verb: 'post', code: 200, want: true },
  'a refused write': { verb: 'patch', code: 409, want: true },
  'a successful read': { verb: 'get', code: 200, want: false },
  'a watch': { verb: 'watch', code: 200, want: false },
  'a response that is not modified': { verb: 'get', code: 304, want: false },
  'a refused read': { verb: 'list', code: 403, want: true },
  'a read of a missing object': { verb: 'get', code: 404, want: true },
  'a console': { verb: 'get', code: 101, want: true },
  'a review': { verb: 'create', code: 201, isReview: true, want: false },
  'a refused review': { verb: 'create', code: 403, isReview: true, want: true },
};

for (const [name, { verb, code, isReview = false, want }] of Object.entries(audited)) {
  test(`${name} is ${want ? '' : 'not '}audited`, () => assert.equal(isAudited(verb, code, isReview), want));
}

const LEASE = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1';
const NODE = { name: 'system:node:node-1', groups: ['system:nodes', 'system:authenticated'] };
const account = (namespace: string) => ({
  name: `system:serviceaccount:${namespace}:a`,
  groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
});

const chatter: Record<string, { record: Partial<AuditRecord>; want: boolean }> = {
  'the Lease of a node': { record: { path: LEASE, user: NODE, verb: 'update', code: 200 }, want: true },
  'an Event of a node': { record: { path: '/api/v1/namespaces/a/events', user: NODE }, want: true },
  'an Event of the newer group': {
    record: { path: '/apis/events.k8s.io/v1/namespaces/a/events', user: account('kube-system') },
    want: true,
  },
  'an Event of a controller of this process': {
    record: { path: '/api/v1/namespaces/a/events', isLocal: true, sourceIp: undefined, user: account('selfsame') },
    want: true,
  },
  'a refused write of a Lease': { record: { path: LEASE, user: NODE, code: 403 }, want: false },
  'a Lease of a user': { record: { path: LEASE }, want: false },
  'a Lease of an ordinary service account': { record: { path: LEASE, user: account('default') }, want: false },
  'a Lease of an unauthenticated user': {
    record: { path: LEASE, user: { name: 'system:anonymous', groups: ['system:unauthenticated'] } },
    want: false,
  },
  'a Lease by impersonating a node': {
    record: { path: LEASE, user: NODE, impersonated: NODE },
    want: false,
  },
  'a kind of the same name in another group': {
    record: { path: '/apis/example.com/v1/namespaces/a/leases', user: NODE },
    want: false,
  },
  'the status of a node': { record: { path: '/api/v1/nodes/node-1/status', user: NODE }, want: false },
};

for (const [name, { record, want }] of Object.entries(chatter)) {
  test(`${name} is ${want ? '' : 'not '}routine system traffic`, () => {
    assert.equal(isRoutineSystemTraffic(aRecord(record)), want);
    for (const [level, kept] of [
      ['writes', !want],
      ['all-writes', true],
    ] as const) {
      const taken: AuditRecord[] = [];
      filterByLevel(level, (one) => taken.push(one))(aRecord(record));
      assert.equal(taken.length === 1, kept, level);
    }
  });
}
