import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { hasSupportedSource, programVariables } from '#node/pods/program-variables.ts';

const pod: Stored<Pod> = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: 'p',
    namespace: 'ns',
    uid: 'u',
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T00:00:00Z',
    labels: { 'batch.kubernetes.io/job-name': 'j' },
    annotations: { note: 'n' },
  },
  spec: { nodeName: 'n1', serviceAccountName: 'sa', containers: [] },
};

/** The values of variables by field path; undefined for unsupported fields. */
const fields: Record<string, string | undefined> = {
  'metadata.name': 'p',
  'metadata.namespace': 'ns',
  'metadata.uid': 'u',
  'spec.nodeName': 'n1',
  'spec.serviceAccountName': 'sa',
  "metadata.labels['batch.kubernetes.io/job-name']": 'j',
  "metadata.annotations['note']": 'n',
  "metadata.labels['missing']": '',
  "metadata.labels['__proto__']": '',
  'metadata.labels': undefined,
  'status.podIP': undefined,
};

for (const [fieldPath, want] of Object.entries(fields)) {
  test(`${fieldPath} is ${want === undefined ? 'not supported' : JSON.stringify(want)}`, () => {
    const variable = { name: 'JOB_X', valueFrom: { fieldRef: { fieldPath } } };
    assert.equal(hasSupportedSource(variable), want !== undefined);
    if (want === undefined) return;
    const spec = { ...pod.spec, containers: [{ name: 'c', image: 'i', env: [variable] }] };
    assert.deepEqual(programVariables({ ...pod, spec }), { JOB_X: want });
  });
}

test('plain values are used as they are, and a missing value is empty', () => {
  const env = [{ name: 'JOB_GLOB', value: '*' }, { name: 'JOB_NAME' }];
  const spec = { ...pod.spec, containers: [{ name: 'c', image: 'i', env }] };
  assert.deepEqual(programVariables({ ...pod, spec }), { JOB_GLOB: '*', JOB_NAME: '' });
});

test('secrets are not supported', () => {
  assert.equal(hasSupportedSource({ name: 'JOB_X', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }), false);
});
