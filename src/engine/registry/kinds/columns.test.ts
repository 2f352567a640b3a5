/** Tests the cells of `kubectl get -o wide`. Pods have a test of their own. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { validatingAdmissionPolicyBindings } from '#engine/registry/kinds/admission/validating-admission-policy-binding.ts';
import { validatingAdmissionPolicies } from '#engine/registry/kinds/admission/validating-admission-policy.ts';
import { mutatingWebhookConfigurations } from '#engine/registry/kinds/admission/webhook-configurations.ts';
import { apiServices } from '#engine/registry/kinds/api-service.ts';
import { configMaps } from '#engine/registry/kinds/core/config-map.ts';
import { controllerRevisions } from '#engine/registry/kinds/controller-revision.ts';
import { events } from '#engine/registry/kinds/core/event.ts';
import { jobs } from '#engine/registry/kinds/job/job.ts';
import { cellsOf, CREATED, type Fields } from '#engine/registry/kinds/testing/sample-kind.ts';
import { leases } from '#engine/registry/kinds/lease.ts';
import { namespaces } from '#engine/registry/kinds/core/namespace.ts';
import { nodes } from '#engine/registry/kinds/core/node.ts';
import { persistentVolumeClaims } from '#engine/registry/kinds/volumes/persistent-volume-claim.ts';
import { persistentVolumes } from '#engine/registry/kinds/volumes/persistent-volume.ts';
import { podDisruptionBudgets } from '#engine/registry/kinds/pod/pod-disruption-budget.ts';
import { priorityClasses } from '#engine/registry/kinds/priority-class.ts';
import { clusterRoles, roleBindings } from '#engine/registry/kinds/access/rbac.ts';
import { limitRanges } from '#engine/registry/kinds/core/limit-range.ts';
import { resourceQuotas } from '#engine/registry/kinds/core/resource-quota.ts';
import { secrets } from '#engine/registry/kinds/core/secret.ts';
import { serviceAccounts } from '#engine/registry/kinds/core/service-account.ts';
import { services } from '#engine/registry/kinds/core/service.ts';
import { storageClasses } from '#engine/registry/kinds/volumes/storage-class.ts';
import type { Resource } from '#engine/registry/resource.ts';

const Age = '5m';
const DELETED = { deletionTimestamp: CREATED };

const cases: Record<string, [Resource, Fields, Record<string, unknown>]> = {
  'a namespace': [namespaces, { status: { phase: 'Active' } }, { Status: 'Active', Age }],
  'a config map counts data and binaryData': [
    configMaps,
    { data: { a: '1', b: '2' }, binaryData: { c: 'AA==' } },
    { Data: 3, Age },
  ],
  'a secret': [secrets, { type: 'Opaque', data: { a: 'AA==' } }, { Type: 'Opaque', Data: 1, Age }],
  'a limit range shows when it was created': [limitRanges, {}, { 'Created At': CREATED }],
  'a lease': [leases, { spec: { holderIdentity: 'me' } }, { Holder: 'me', Age }],
  'a ready node with roles': [
    nodes,
    {
      metadata: { labels: { 'node-role.kubernetes.io/worker': '', 'kubernetes.io/role': 'edge' } },
      status: {
        conditions: [{ type: 'Ready', status: 'True' }],
        addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
        nodeInfo: { kubeletVersion: 'v1.32.0', kernelVersion: '6.1', architecture: 'amd64', osImage: 'Debian' },
      },
    },
    {
      Status: 'Ready',
      Roles: 'edge,worker',
      Age,
      Version: 'v1.32.0',
      'Internal-IP': '10.0.0.1',
      'External-IP': '<none>',
      'OS-Image': 'Debian',
      'Kernel-Version': '6.1',
      'Container-Runtime': '<unknown>',
    },
  ],
  'a cordoned node without status': [
    nodes,
    { spec: { unschedulable: true } },
    {
      Status: 'Unknown,SchedulingDisabled',
      Roles: '<none>',
      Age,
      Version: '',
      'Internal-IP': '<none>',
      'External-IP': '<none>',
      'OS-Image': '<unknown>',
      'Kernel-Version': '<unknown>',
      'Container-Runtime': '<unknown>',
    },
  ],
  'an old-style event': [
    events,
    {
      type: 'Warning',
      reason: 'Failed',
      involvedObject: { kind: 'Pod', name: 'web', fieldPath: 'spec.containers{a}' },
      source: { component: 'kubelet', host: 'node-1' },
      message: ' gone \n',
      firstTimestamp: '2026-01-01T11:50:00Z',
      lastTimestamp: '2026-01-01T11:59:00Z',
      count: 4,
    },
    {
      'Last Seen': '60s',
      Type: 'Warning',
      Reason: 'Failed',
      Object: 'pod/web',
      Subobject: 'spec.containers{a}',
      Source: 'kubelet, node-1',
      Message: 'gone',
      'First Seen': '10m',
      Count: 4,
      Name: 'one',
    },
  ],
  'a new-style event that was seen once': [
    events,
    {
      involvedObject: { kind: 'Node' },
      reportingComponent: 'example.com/controller',
      eventTime: '2026-01-01T11:59:55.000000Z',
    },
    {
      'Last Seen': '5s',
      Type: '',
      Reason: '',
      Object: 'node',
      Subobject: '',
      Source: 'example.com/controller',
      Message: '',
      'First Seen': '5s',
      Count: 1,
      Name: 'one',
    },
  ],
  'a bound claim': [
    persistentVolumeClaims,
    {
      spec: { volumeName: 'pv-1', storageClassName: 'fast', volumeMode: 'Block' },
      status: { phase: 'Bound', accessModes: ['ReadWriteMany', 'ReadWriteOnce'], capacity: { storage: '1024Mi' } },
    },
    {
      Status: 'Bound',
      Volume: 'pv-1',
      Capacity: '1Gi',
      'Access Modes': 'RWO,RWX',
      StorageClass: 'fast',
      VolumeAttributesClass: '<unset>',
      Age,
      VolumeMode: 'Block',
    },
  ],
  'a pending claim shows no size': [
    persistentVolumeClaims,
    { spec: { resources: { requests: { storage: '1Gi' } } }, status: { phase: 'Pending' } },
    {
      Status: 'Pending',
      Volume: '',
      Capacity: '',
      'Access Modes': '',
      StorageClass: '',
      VolumeAttributesClass: '<unset>',
      Age,
      VolumeMode: '<unset>',
    },
  ],
  'a volume under deletion': [
    persistentVolumes,
    {
      metadata: DELETED,
      spec: {
        capacity: { storage: '2Gi' },
        accessModes: ['ReadOnlyMany'],
        persistentVolumeReclaimPolicy: 'Retain',
        claimRef: { namespace: 'prod', name: 'data' },
        volumeMode: 'Filesystem',
      },
      status: { phase: 'Bound' },
    },
    {
      Capacity: '2Gi',
      'Access Modes': 'ROX',
      'Reclaim Policy': 'Retain',
      Status: 'Terminating',
      Claim: 'prod/data',
      StorageClass: '',
      VolumeAttributesClass: '<unset>',
      Reason: '',
      Age,
      VolumeMode: 'Filesystem',
    },
  ],
  'the default storage class is marked': [
    storageClasses,
    {
      metadata: { annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
      provisioner: 'example.com/disk',
      reclaimPolicy: 'Retain',
    },
    {
      Name: 'one (default)',
      Provisioner: 'example.com/disk',
      ReclaimPolicy: 'Retain',
      VolumeBindingMode: 'Immediate',
      AllowVolumeExpansion: false,
      Age,
    },
  ],
  'a quota separates requests from limits': [
    resourceQuotas,
    { status: { hard: { 'limits.cpu': '4', pods: '10', 'requests.cpu': '2' }, used: { pods: '3' } } },
    { Age, Request: 'pods: 3/10, requests.cpu: 0/2', Limit: 'limits.cpu: 0/4' },
  ],
  'a running job': [
    jobs,
    {
      spec: {
        parallelism: 3,
        selector: { matchLabels: { b: '2', a: '1' } },
        template: {
          spec: {
            containers: [
              { name: 'x', image: 'i' },
              { name: 'y', image: 'j' },
            ],
          },
        },
      },
      status: { startTime: '2026-01-01T11:58:30Z', succeeded: 1 },
    },
    {
      Status: 'Running',
      Completions: '1/1 of 3',
      Duration: '90s',
      Age,
      Containers: 'x,y',
      Images: 'i,j',
      Selector: 'a=1,b=2',
    },
  ],
  'a complete job': [
    jobs,
    {
      spec: { completions: 2, template: {} },
      status: {
        succeeded: 2,
        startTime: '2026-01-01T11:50:00Z',
        completionTime: '2026-01-01T11:50:45Z',
        conditions: [
          { type: 'SuccessCriteriaMet', status: 'True' },
          { type: 'Complete', status: 'True' },
        ],
      },
    },
    { Status: 'Complete', Completions: '2/2', Duration: '45s', Age, Containers: '', Images: '', Selector: '<none>' },
  ],
  'a job that met its success criteria while its pods terminate': [
    jobs,
    {
      spec: { completions: 1, template: {} },
      status: { succeeded: 1, conditions: [{ type: 'SuccessCriteriaMet', status: 'True' }] },
    },
    { Status: 'Running', Completions: '1/1', Duration: '', Age, Containers: '', Images: '', Selector: '<none>' },
  ],
  'a service account counts its secrets': [serviceAccounts, { secrets: [{ name: 'a' }] }, { Secrets: 1, Age }],
  'a disruption budget': [
    podDisruptionBudgets,
    { spec: { maxUnavailable: '20%' }, status: { disruptionsAllowed: 2 } },
    { 'Min Available': 'N/A', 'Max Unavailable': '20%', 'Allowed Disruptions': 2, Age },
  ],
  'a priority class': [
    priorityClasses,
    { value: 100, preemptionPolicy: 'Never' },
    { Value: 100, 'Global-Default': false, Age, PreemptionPolicy: 'Never' },
  ],
  'a controller revision names its owner by kind and group': [
    controllerRevisions,
    {
      metadata: {
        ownerReferences: [
          { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'db', uid: 'u', controller: true },
        ],
      },
      revision: 7,
    },
    { Controller: 'virtualmachine.kubevirt.io/db', Revision: 7, Age },
  ],
  'a cluster role shows its creation time': [clusterRoles, {}, { 'Created At': CREATED }],
  'a role binding': [
    roleBindings,
    {
      roleRef: { kind: 'Role', name: 'reader' },
      subjects: [
        { kind: 'User', name: 'ann' },
        { kind: 'User', name: 'bob' },
        { kind: 'Group', name: 'devs' },
        { kind: 'ServiceAccount', name: 'ci', namespace: 'prod' },
      ],
    },
    { Role: 'Role/reader', Age, Users: 'ann, bob', Groups: 'devs', ServiceAccounts: 'prod/ci' },
  ],
  'a policy': [
    validatingAdmissionPolicies,
    { spec: { validations: [{ expression: 'true' }], paramKind: { apiVersion: 'v1', kind: 'ConfigMap' } } },
    { Validations: 1, ParamKind: 'v1/ConfigMap', Age },
  ],
  'a policy binding': [
    validatingAdmissionPolicyBindings,
    { spec: { policyName: 'p', paramRef: { name: 'limits' } } },
    { PolicyName: 'p', ParamRef: '*/limits', Age },
  ],
  webhooks: [mutatingWebhookConfigurations, { webhooks: [{}, {}] }, { Webhooks: 2, Age }],
  'a remote API service that is not available': [
    apiServices,
    {
      spec: { service: { namespace: 'kubevirt', name: 'virt-api' } },
      status: { conditions: [{ type: 'Available', status: 'False', reason: 'MissingEndpoints' }] },
    },
    { Service: 'kubevirt/virt-api', Available: 'False (MissingEndpoints)', Age },
  ],
  'a service': [
    services,
    {
      spec: {
        type: 'NodePort',
        clusterIP: '10.1.1.1',
        clusterIPs: ['10.1.1.1'],
        ports: [
          { port: 80, nodePort: 30080, protocol: 'TCP' },
          { port: 53, protocol: 'UDP' },
        ],
        selector: { b: '2', a: '1' },
      },
    },
    {
      Type: 'NodePort',
      'Cluster-IP': '10.1.1.1',
      'External-IP': '<none>',
      'Port(s)': '80:30080/TCP,53/UDP',
      Age,
      Selector: 'a=1,b=2',
    },
  ],
};

for (const [name, [resource, fields, want]] of Object.entries(cases)) {
  test(`columns of ${name}`, () => {
    const cells = cellsOf(resource, fields);
    assert.deepEqual(cells, want);
    assert.deepEqual(Object.keys(cells), Object.keys(want), 'the columns must have this order');
  });
}

test('columns that only -o wide shows', () => {
  const wide = [nodes, events, jobs, persistentVolumes, roleBindings].map(({ columns }) =>
    columns.filter(({ priority = 0 }) => priority > 0).map(({ name }) => name),
  );
  assert.deepEqual(wide, [
    ['Internal-IP', 'External-IP', 'OS-Image', 'Kernel-Version', 'Container-Runtime'],
    ['Subobject', 'Source', 'First Seen', 'Count', 'Name'],
    ['Containers', 'Images', 'Selector'],
    ['VolumeMode'],
    ['Users', 'Groups', 'ServiceAccounts'],
  ]);
});

test('an object without a creation time has an unknown age', () => {
  assert.equal(cellsOf(configMaps, { metadata: { creationTimestamp: '' } })['Age'], '<unknown>');
});
