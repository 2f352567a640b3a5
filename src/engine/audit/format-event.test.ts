import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatEvent } from '#engine/audit/format-event.ts';
import { aRecord } from '#engine/audit/testing/a-record.ts';
import type { AuditRecord } from '#engine/audit/audit-record.ts';
import { alreadyExists, ApiError, unauthorized } from '#kube/api-error.ts';

function eventOf(record: Partial<AuditRecord>, dropped?: number): Record<string, unknown> {
  const line = formatEvent(aRecord(record), dropped);
  assert.equal(line.indexOf('\n'), line.length - 1, 'one line');
  return JSON.parse(line) as Record<string, unknown>;
}

const PLAIN = {
  kind: 'Event',
  apiVersion: 'audit.k8s.io/v1',
  level: 'Metadata',
  auditID: 'id-1',
  stage: 'ResponseComplete',
  requestURI: '/api/v1/namespaces/default/configmaps',
  verb: 'create',
  user: { username: 'alice', groups: ['system:authenticated'] },
  sourceIPs: ['192.0.2.7'],
  userAgent: 'kubectl/v1.32.0',
  objectRef: { resource: 'configmaps', namespace: 'default', name: 'one', apiVersion: 'v1' },
  responseStatus: { metadata: {}, code: 201 },
  requestReceivedTimestamp: '2026-01-31T12:00:00.007000Z',
  stageTimestamp: '2026-01-31T12:00:00.008250Z',
  annotations: {
    'authorization.k8s.io/decision': 'allow',
    'authorization.k8s.io/reason': 'RBAC: allowed by ClusterRoleBinding "a"',
  },
};

const ALLOWED = PLAIN.annotations;
const invalid = new ApiError(422, 'Invalid', 'Secret "s" is invalid: data[k]: Invalid value: "hunter2"', {
  details: { name: 's', causes: [{ field: 'data[k]', message: 'Invalid value: "hunter2"' }, { field: 'type' }] },
});
const denied = new ApiError(422, 'Invalid', 'ValidatingAdmissionPolicy "p" denied request: no', {
  details: { causes: [{ message: 'no' }] },
});

/** Undefined = the field must be absent. */
const cases: Record<string, { record: Partial<AuditRecord>; dropped?: number; want: Record<string, unknown> }> = {
  'has the fields of an Event': { record: {}, want: PLAIN },
  'names group and subresource': {
    record: { path: '/apis/example.com/v1/namespaces/n/boxes/b/scale', name: 'b' },
    want: {
      objectRef: {
        resource: 'boxes',
        namespace: 'n',
        name: 'b',
        apiGroup: 'example.com',
        apiVersion: 'v1',
        subresource: 'scale',
      },
    },
  },
  'has no object for a plain path': {
    record: { path: '/healthz', verb: 'post', name: '' },
    want: { objectRef: undefined, requestURI: '/healthz', verb: 'post' },
  },
  'omits the source of a local request': {
    record: { sourceIp: undefined, isLocal: true, userAgent: '' },
    want: { sourceIPs: undefined, userAgent: undefined },
  },
  'contains the real and the impersonated user': {
    record: { impersonated: { name: 'bob', uid: 'u', groups: ['g'], extra: { reason: ['x'] } } },
    want: {
      user: PLAIN.user,
      impersonatedUser: { username: 'bob', uid: 'u', groups: ['g'], extra: { reason: ['x'] } },
    },
  },
  'has an empty user for an unauthenticated request': {
    record: { user: { name: '', groups: [] }, code: 401, error: unauthorized(), decision: undefined },
    want: {
      user: {},
      responseStatus: { metadata: {}, status: 'Failure', message: 'Unauthorized', reason: 'Unauthorized', code: 401 },
      annotations: {},
    },
  },
  'contains the reason of a refusal': {
    record: { code: 409, error: alreadyExists({ group: '', plural: 'configmaps' }, 'one') },
    want: {
      responseStatus: {
        metadata: {},
        status: 'Failure',
        message: 'configmaps "one" already exists',
        reason: 'AlreadyExists',
        code: 409,
      },
    },
  },
  'contains the names of invalid fields, not their values': {
    record: { code: 422, error: invalid },
    want: {
      responseStatus: {
        metadata: {},
        status: 'Failure',
        message: 'invalid: data[k], type',
        reason: 'Invalid',
        code: 422,
      },
    },
  },
  'contains the message of a policy': {
    record: { code: 422, error: denied },
    want: {
      responseStatus: { metadata: {}, status: 'Failure', message: denied.message, reason: 'Invalid', code: 422 },
    },
  },
  'does not quote a body that could not be read': {
    record: { code: 400, error: new ApiError(400, 'BadRequest', 'cannot parse "hunter2"') },
    want: { responseStatus: { metadata: {}, status: 'Failure', reason: 'BadRequest', code: 400 } },
  },
  'has the decision forbid for a refused impersonation': {
    record: { code: 403, decision: undefined },
    want: { annotations: { 'authorization.k8s.io/decision': 'forbid', 'authorization.k8s.io/reason': '' } },
  },
  'marks a response that continues': { record: { isOpen: true, code: 101 }, want: { stage: 'ResponseStarted' } },
  'contains the annotations of admission': {
    record: {
      annotations: Object.fromEntries([
        ['__proto__', 'x'],
        ['p/a"b', 'c\nd'],
      ]),
    },
    want: { annotations: Object.fromEntries([...Object.entries(ALLOWED), ['__proto__', 'x'], ['p/a"b', 'c\nd']]) },
  },
  'contains dry run and warnings': {
    record: { query: new URLSearchParams('dryRun=All'), warnings: ['old "kind"', 'x'] },
    want: {
      requestURI: `${PLAIN.requestURI}?dryRun=All`,
      annotations: {
        ...ALLOWED,
        'audit.selfsame.io/dry-run': 'All',
        'audit.selfsame.io/warnings': '["old \\"kind\\"","x"]',
      },
    },
  },
  'contains the number of dropped records before it': {
    record: {},
    dropped: 17,
    want: { annotations: { ...ALLOWED, 'audit.selfsame.io/dropped-before': '17' } },
  },
  'escapes line ends and quotes': {
    record: { userAgent: 'a"b\\c\nd\u2028é', name: 'x\u0000' },
    want: { userAgent: 'a"b\\c\nd\u2028é', objectRef: { ...PLAIN.objectRef, name: 'x\u0000' } },
  },
  'truncates long values': {
    record: { userAgent: 'a'.repeat(2000), verb: 'v'.repeat(100) },
    want: { userAgent: `${'a'.repeat(1024)}...TRUNCATED`, verb: `${'v'.repeat(32)}...TRUNCATED` },
  },
};

for (const [name, { record, dropped, want }] of Object.entries(cases)) {
  test(`a line ${name}`, () => {
    const event = eventOf(record, dropped);
    const actual = Object.fromEntries(Object.keys(want).map((key) => [key, event[key]]));
    assert.deepEqual(actual, want);
  });
}

test('a plain line has exactly these fields', () => assert.deepEqual(eventOf({}), PLAIN));

test('a line contains no terminal control characters', () => {
  const text = 'a\u001b[2J\u009b2J\u202e\u007f';
  const user = { name: text, groups: [text] };
  const error = new ApiError(403, 'Forbidden', text);
  const record = aRecord({ user, error, userAgent: text, name: text, warnings: [text], annotations: { [text]: text } });
  const line = formatEvent(record);
  // oxlint-disable-next-line no-control-regex
  assert.doesNotMatch(line.trimEnd(), /[\u0000-\u001f\u007f-\u009f\u2028-\u202e]/);
  assert.equal((JSON.parse(line) as { userAgent: string }).userAgent, text);
});

test('a request without an id gets one', () => {
  const ids = [eventOf({ id: undefined }), eventOf({ id: undefined })].map(({ auditID }) => String(auditID));
  assert.match(ids[0]!, /^[0-9a-f-]{36}$/);
  assert.notEqual(ids[0], ids[1]);
});

test('microseconds are zero-padded', () => {
  const receivedMs = Date.UTC(2026, 0, 1) + 0.0625;
  assert.equal(eventOf({ receivedMs })['requestReceivedTimestamp'], '2026-01-01T00:00:00.000062Z');
});
