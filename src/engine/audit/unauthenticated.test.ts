import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatEvent } from '#engine/audit/format-event.ts';
import { unauthenticatedRecord } from '#engine/audit/unauthenticated.ts';
import { unauthorized } from '#kube/api-error.ts';

const cases: Record<string, { method: string; url: string; verb: string; requestURI: string; objectRef?: object }> = {
  'a write': {
    method: 'DELETE',
    url: '/api/v1/namespaces/a/pods/p?force=true',
    verb: 'delete',
    requestURI: '/api/v1/namespaces/a/pods/p?force=true',
    objectRef: { resource: 'pods', namespace: 'a', name: 'p', apiVersion: 'v1' },
  },
  'a watch with a token in its URL': {
    method: 'GET',
    url: '/api/v1/pods?watch=1&access_token=hunter2',
    verb: 'watch',
    requestURI: '/api/v1/pods?watch=1&access_token=REDACTED',
    objectRef: { resource: 'pods', apiVersion: 'v1' },
  },
  'an unknown method': {
    method: 'FROB',
    url: '/api/v1/pods',
    verb: 'frob',
    requestURI: '/api/v1/pods',
    objectRef: { resource: 'pods', apiVersion: 'v1' },
  },
  'a plain path': { method: 'GET', url: '/metrics', verb: 'get', requestURI: '/metrics' },
};

for (const [name, { method, url, verb, requestURI, objectRef }] of Object.entries(cases)) {
  test(`the record of ${name} with invalid credentials has no user`, () => {
    const from = { userAgent: 'curl/8', sourceIp: '192.0.2.7', auditId: 'id-1' };
    const record = unauthenticatedRecord({ method, url, ...from, error: unauthorized() }, Date.UTC(2026, 0, 1));
    const time = '2026-01-01T00:00:00.000000Z';
    assert.deepEqual(JSON.parse(formatEvent(record)), {
      kind: 'Event',
      apiVersion: 'audit.k8s.io/v1',
      level: 'Metadata',
      auditID: 'id-1',
      stage: 'ResponseComplete',
      requestURI,
      verb,
      user: {},
      sourceIPs: ['192.0.2.7'],
      userAgent: 'curl/8',
      ...(objectRef && { objectRef }),
      responseStatus: { metadata: {}, status: 'Failure', message: 'Unauthorized', reason: 'Unauthorized', code: 401 },
      requestReceivedTimestamp: time,
      stageTimestamp: time,
      annotations: {},
    });
  });
}
