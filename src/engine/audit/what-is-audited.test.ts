import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AuditRecord } from '#engine/audit/audit-record.ts';
import { aRecord } from '#engine/audit/testing/a-record.ts';
import { atLevel, isAudited, isChatter } from '#engine/audit/what-is-audited.ts';

const audited: Record<string, { verb: string; code: number; isQuestion?: boolean; want: boolean }> = {
  'a write that worked': { verb: 'create', code: 201, want: true },
  'a collection that was deleted': { verb: 'deletecollection', code: 200, want: true },
  'a write to a plain path': { verb: 'post', code: 200, want: true },
  'a write that was refused': { verb: 'patch', code: 409, want: true },
  'a read that worked': { verb: 'get', code: 200, want: false },
  'a watch': { verb: 'watch', code: 200, want: false },
  'an answer that has not changed': { verb: 'get', code: 304, want: false },
  'a read that was refused': { verb: 'list', code: 403, want: true },
  'a read of what is not there': { verb: 'get', code: 404, want: true },
  'a console': { verb: 'get', code: 101, want: true },
  'a question that is asked by creating it': { verb: 'create', code: 201, isQuestion: true, want: false },
  'such a question that was refused': { verb: 'create', code: 403, isQuestion: true, want: true },
};

for (const [name, { verb, code, isQuestion = false, want }] of Object.entries(audited)) {
  test(`${name} is ${want ? '' : 'not '}audited`, () => assert.equal(isAudited(verb, code, isQuestion), want));
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
  'a Lease that was refused': { record: { path: LEASE, user: NODE, code: 403 }, want: false },
  'the Lease of a person': { record: { path: LEASE }, want: false },
  'the Lease of an account that anybody made': { record: { path: LEASE, user: account('default') }, want: false },
  'the Lease of nobody': {
    record: { path: LEASE, user: { name: 'system:anonymous', groups: ['system:unauthenticated'] } },
    want: false,
  },
  'a Lease in the name of a node': {
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
  test(`${name} is ${want ? '' : 'not '}chatter`, () => {
    assert.equal(isChatter(aRecord(record)), want);
    for (const [level, kept] of [
      ['writes', !want],
      ['all-writes', true],
    ] as const) {
      const taken: AuditRecord[] = [];
      atLevel(level, (one) => taken.push(one))(aRecord(record));
      assert.equal(taken.length === 1, kept, level);
    }
  });
}
