/** Tests the defaults of new objects. Pods have a test of their own. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { validatingAdmissionPolicies } from '#engine/registry/kinds/admission/validating-admission-policy.ts';
import { mutatingWebhookConfigurations } from '#engine/registry/kinds/admission/webhook-configurations.ts';
import { apiServices } from '#engine/registry/kinds/api-service.ts';
import { events } from '#engine/registry/kinds/core/event.ts';
import { jobs } from '#engine/registry/kinds/job/job.ts';
import { anObject, created, CREATED, type Fields, UID } from '#engine/registry/kinds/testing/sample-kind.ts';
import { limitRanges } from '#engine/registry/kinds/core/limit-range.ts';
import { namespaces } from '#engine/registry/kinds/core/namespace.ts';
import { nodes } from '#engine/registry/kinds/core/node.ts';
import { persistentVolumeClaims } from '#engine/registry/kinds/volumes/persistent-volume-claim.ts';
import { persistentVolumes } from '#engine/registry/kinds/volumes/persistent-volume.ts';
import { podDisruptionBudgets } from '#engine/registry/kinds/pod/pod-disruption-budget.ts';
import { roleBindings } from '#engine/registry/kinds/access/rbac.ts';
import { secrets } from '#engine/registry/kinds/core/secret.ts';
import { services } from '#engine/registry/kinds/core/service.ts';
import { storageClasses } from '#engine/registry/kinds/volumes/storage-class.ts';
import type { Resource } from '#engine/registry/resource.ts';

const RBAC = 'rbac.authorization.k8s.io';

const cases: Record<string, [Resource, Fields, Record<string, unknown>]> = {
  'a namespace is active and has the kubernetes finalizer': [
    namespaces,
    { status: { phase: 'Terminating' } },
    { spec: { finalizers: ['kubernetes'] }, status: { phase: 'Active' } },
  ],
  'a namespace keeps its custom finalizers': [
    namespaces,
    { spec: { finalizers: ['example.com/x'] } },
    { spec: { finalizers: ['example.com/x', 'kubernetes'] }, status: { phase: 'Active' } },
  ],
  'the default limit of a container is its maximum, its default request the limit or the minimum': [
    limitRanges,
    { spec: { limits: [{ type: 'Container', max: { cpu: '2000m' }, min: { memory: '1Mi', cpu: '1' } }] } },
    {
      spec: {
        limits: [
          {
            type: 'Container',
            max: { cpu: '2' },
            min: { memory: '1Mi', cpu: '1' },
            default: { cpu: '2' },
            defaultRequest: { memory: '1Mi', cpu: '2' },
          },
        ],
      },
    },
  ],
  'stringData of a secret becomes data': [
    secrets,
    { data: { a: 'eA==', b: 'eA==' }, stringData: { a: 'secret' } },
    { data: { a: 'c2VjcmV0', b: 'eA==' }, type: 'Opaque' },
  ],
  'a claim': [
    persistentVolumeClaims,
    {
      spec: {
        resources: { requests: { storage: 1073741824 } },
        dataSource: { kind: 'PersistentVolumeClaim', name: 'src' },
      },
      status: { phase: 'Bound' },
    },
    {
      spec: {
        resources: { requests: { storage: '1073741824' } },
        volumeMode: 'Filesystem',
        dataSource: { kind: 'PersistentVolumeClaim', name: 'src' },
        dataSourceRef: { kind: 'PersistentVolumeClaim', name: 'src' },
      },
      status: { phase: 'Pending' },
    },
  ],
  'a claim with a source that only dataSourceRef supports': [
    persistentVolumeClaims,
    { spec: { dataSource: { apiGroup: 'example.com', kind: 'Image', name: 'a' } } },
    { spec: { resources: {}, volumeMode: 'Filesystem' }, status: { phase: 'Pending' } },
  ],
  'an event has an empty reporter': [
    events,
    { involvedObject: { name: 'a' } },
    { involvedObject: { name: 'a' }, reportingComponent: '', reportingInstance: '', source: {} },
  ],
  'a volume': [
    persistentVolumes,
    { spec: { capacity: { storage: '1024Ki' }, hostPath: { path: '/d' } } },
    {
      spec: {
        capacity: { storage: '1Mi' },
        hostPath: { path: '/d', type: '' },
        persistentVolumeReclaimPolicy: 'Retain',
        volumeMode: 'Filesystem',
      },
      status: { phase: 'Pending' },
    },
  ],
  'a storage class': [
    storageClasses,
    { provisioner: 'example.com/disk' },
    { provisioner: 'example.com/disk', reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' },
  ],
  'subjects of a binding': [
    roleBindings,
    {
      roleRef: { kind: 'Role', name: 'r' },
      subjects: [
        { kind: 'User', name: 'ann' },
        { kind: 'ServiceAccount', name: 'ci' },
      ],
    },
    {
      roleRef: { apiGroup: RBAC, kind: 'Role', name: 'r' },
      subjects: [
        { kind: 'User', name: 'ann', apiGroup: RBAC },
        { kind: 'ServiceAccount', name: 'ci' },
      ],
    },
  ],
  'the status of a disruption budget starts from zero': [
    podDisruptionBudgets,
    { spec: {}, status: { disruptionsAllowed: 5 } },
    {
      spec: {},
      status: { currentHealthy: 0, desiredHealthy: 0, disruptionsAllowed: 0, expectedPods: 0 },
    },
  ],
  'a policy': [
    validatingAdmissionPolicies,
    { spec: { matchConstraints: { resourceRules: [{}] } } },
    {
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: {
          matchPolicy: 'Equivalent',
          namespaceSelector: {},
          objectSelector: {},
          resourceRules: [{ scope: '*' }],
        },
      },
      status: {},
    },
  ],
  'a webhook': [
    mutatingWebhookConfigurations,
    { webhooks: [{ name: 'w', clientConfig: { service: { name: 's', namespace: 'n' } }, rules: [{}] }] },
    {
      webhooks: [
        {
          name: 'w',
          clientConfig: { service: { name: 's', namespace: 'n', port: 443 } },
          failurePolicy: 'Fail',
          matchPolicy: 'Equivalent',
          namespaceSelector: {},
          objectSelector: {},
          reinvocationPolicy: 'Never',
          rules: [{ scope: '*' }],
          timeoutSeconds: 10,
        },
      ],
    },
  ],
  'a local API service is available at once': [
    apiServices,
    { spec: { version: 'v1', groupPriorityMinimum: 1, versionPriority: 1 } },
    {
      spec: { version: 'v1', groupPriorityMinimum: 1, versionPriority: 1 },
      status: {
        conditions: [
          {
            type: 'Available',
            status: 'True',
            lastTransitionTime: CREATED,
            reason: 'Local',
            message: 'Local APIServices are always available',
          },
        ],
      },
    },
  ],
  'a service': [
    services,
    { spec: { ports: [{ port: 80 }], clusterIP: '10.0.0.1' } },
    {
      spec: {
        ports: [{ port: 80, protocol: 'TCP', targetPort: 80 }],
        clusterIP: '10.0.0.1',
        clusterIPs: ['10.0.0.1'],
        internalTrafficPolicy: 'Cluster',
        sessionAffinity: 'None',
        type: 'ClusterIP',
      },
      status: { loadBalancer: {} },
    },
  ],
};

for (const [name, [resource, fields, want]] of Object.entries(cases)) {
  test(`defaults: ${name}`, () => {
    const { apiVersion: _v, kind: _k, metadata: _m, ...rest } = created(resource, fields);
    assert.deepEqual(rest, want);
  });
}

test('a namespace has its name as a label', () => {
  const { metadata } = created(namespaces, { metadata: { labels: { team: 'a' } } });
  assert.deepEqual(metadata.labels, { team: 'a', 'kubernetes.io/metadata.name': 'one' });
});

test("a namespace's finalizers survive an update and block its deletion", () => {
  const old = created(namespaces, {});
  const next = anObject(namespaces, { spec: { finalizers: [] } });
  namespaces.strategy.prepareForUpdate?.(next, old);
  assert.deepEqual(next['spec'], { finalizers: ['kubernetes'] });
  assert.equal(namespaces.strategy.hasDeletionBlocker?.(next), true);
  assert.equal(namespaces.strategy.hasDeletionBlocker?.({ ...next, spec: { finalizers: [] } }), false);
  namespaces.strategy.beginDeletion?.(next);
  assert.deepEqual(next['status'], { phase: 'Terminating' });
});

test('a new node may have a status, and allocatable defaults to capacity', () => {
  const { status } = created(nodes, { status: { capacity: { cpu: 2, memory: '2048Mi' } } });
  const { capacity, allocatable, nodeInfo } = status as Record<string, Record<string, unknown>>;
  assert.deepEqual(capacity, { cpu: '2', memory: '2Gi' });
  assert.deepEqual(allocatable, capacity);
  assert.equal(nodeInfo?.['kubeletVersion'], '');
});

const aJob = (spec: Record<string, unknown> = {}): Fields => ({
  spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'a', image: 'i:1' }] } }, ...spec },
});

test('a job selects its own pods by its uid', () => {
  const { metadata, spec } = created(jobs, aJob());
  const { selector, template, ...rest } = spec as Record<string, unknown> & { template: { metadata: unknown } };
  const labels = {
    'batch.kubernetes.io/controller-uid': UID,
    'batch.kubernetes.io/job-name': 'one',
    'controller-uid': UID,
    'job-name': 'one',
  };
  assert.deepEqual(selector, { matchLabels: { 'batch.kubernetes.io/controller-uid': UID } });
  assert.deepEqual(template.metadata, { labels });
  assert.deepEqual(metadata.labels, labels);
  assert.deepEqual(rest, {
    backoffLimit: 6,
    completionMode: 'NonIndexed',
    completions: 1,
    manualSelector: false,
    parallelism: 1,
    podReplacementPolicy: 'TerminatingOrFailed',
    suspend: false,
  });
});

test('quantities in the template of a job are canonicalized', () => {
  const resources = { limits: { cpu: 0.5, memory: '1024Mi' } };
  const template = { spec: { containers: [{ name: 'a', image: 'i:1', resources }], overhead: { cpu: 0.25 } } };
  const { spec } = created(jobs, { spec: { template } });
  const made = (spec as { template: { spec: { containers: { resources: unknown }[]; overhead: unknown } } }).template
    .spec;
  assert.deepEqual(made.containers[0]?.resources, { limits: { cpu: '500m', memory: '1Gi' } });
  assert.deepEqual(made.overhead, { cpu: '250m' });
});

test('a job with parallelism only has no completions', () => {
  const { spec } = created(jobs, aJob({ parallelism: 3 }));
  assert.equal((spec as { completions?: number }).completions, undefined);
});
