/** Tests the validation of new objects. Pods have a test of their own. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { validatingAdmissionPolicyBindings } from '#engine/registry/kinds/admission/validating-admission-policy-binding.ts';
import { validatingAdmissionPolicies } from '#engine/registry/kinds/admission/validating-admission-policy.ts';
import { validatingWebhookConfigurations } from '#engine/registry/kinds/admission/webhook-configurations.ts';
import { apiServices } from '#engine/registry/kinds/api-service.ts';
import { configMaps } from '#engine/registry/kinds/core/config-map.ts';
import { events } from '#engine/registry/kinds/core/event.ts';
import { jobs } from '#engine/registry/kinds/job/job.ts';
import { newObjectErrors, type Fields, UID } from '#engine/registry/kinds/testing/sample-kind.ts';
import { leases } from '#engine/registry/kinds/lease.ts';
import { nodes } from '#engine/registry/kinds/core/node.ts';
import { persistentVolumeClaims } from '#engine/registry/kinds/volumes/persistent-volume-claim.ts';
import { persistentVolumes } from '#engine/registry/kinds/volumes/persistent-volume.ts';
import { podDisruptionBudgets } from '#engine/registry/kinds/pod/pod-disruption-budget.ts';
import { priorityClasses } from '#engine/registry/kinds/priority-class.ts';
import { clusterRoleBindings, clusterRoles, roles } from '#engine/registry/kinds/access/rbac.ts';
import { limitRanges } from '#engine/registry/kinds/core/limit-range.ts';
import { resourceQuotas } from '#engine/registry/kinds/core/resource-quota.ts';
import { secrets } from '#engine/registry/kinds/core/secret.ts';
import { services } from '#engine/registry/kinds/core/service.ts';
import { storageClasses } from '#engine/registry/kinds/volumes/storage-class.ts';
import type { Resource } from '#engine/registry/resource.ts';

const CONFIG_KEY =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const aClaim = (spec: Fields): Fields => ({
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
});
const aVolume = (spec: Fields): Fields => ({
  spec: { accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' }, hostPath: { path: '/d' }, ...spec },
});
const aJob = (spec: Fields = {}, restartPolicy = 'Never'): Fields => ({
  spec: { template: { spec: { restartPolicy, containers: [{ name: 'a', image: 'i' }] } }, ...spec },
});
const aPolicy = (spec: Fields): Fields => ({
  spec: {
    matchConstraints: {
      resourceRules: [{ operations: ['*'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods'] }],
    },
    validations: [{ expression: 'true' }],
    ...spec,
  },
});
const aWebhook = (webhook: Fields): Fields => ({
  webhooks: [
    {
      name: 'check.example.com',
      clientConfig: { url: 'https://example.com/check' },
      sideEffects: 'None',
      admissionReviewVersions: ['v1'],
      ...webhook,
    },
  ],
});

const cases: Record<string, [Resource, Fields, string[]]> = {
  'config map: keys must be valid and unique': [
    configMaps,
    { data: { 'a b': '', '..': '', c: '' }, binaryData: { c: '' } },
    [
      `data[a b]: Invalid value: "a b": ${CONFIG_KEY}`,
      `data[..]: Invalid value: "..": must not be '..'`,
      'data[c]: Invalid value: "c": duplicate of key present in binaryData',
    ],
  ],
  'config map: one MiB at most': [
    configMaps,
    { data: { a: 'x'.repeat(1_048_577) } },
    ['[]: Too long: may not be more than 1048576 bytes'],
  ],
  'secret: a TLS secret needs a certificate and a key': [
    secrets,
    { type: 'kubernetes.io/tls', data: { 'tls.crt': 'AA==' } },
    ['data[tls.key]: Required value'],
  ],
  'secret: a token needs the name of its account': [
    secrets,
    { type: 'kubernetes.io/service-account-token' },
    ['metadata.annotations[kubernetes.io/service-account.name]: Required value'],
  ],
  'secret: errors do not quote the content': [
    secrets,
    { type: 'kubernetes.io/dockerconfigjson', stringData: { '.dockerconfigjson': 'pass' } },
    ['data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": must be a JSON object'],
  ],
  'event: the namespace must be that of the object': [
    events,
    { involvedObject: { kind: 'Pod', namespace: 'other' } },
    ['involvedObject.namespace: Invalid value: "other": does not match event.namespace'],
  ],
  'event: an eventTime requires reporter, action and reason': [
    events,
    { involvedObject: { namespace: 'prod' }, eventTime: '2026-01-01T00:00:00.000000Z', reportingComponent: 'x' },
    ['reportingInstance: Required value', 'action: Required value', 'reason: Required value'],
  ],
  'node: taints are unique': [
    nodes,
    {
      spec: {
        taints: [
          { key: 'a', effect: 'NoExecute' },
          { key: 'a', effect: 'NoExecute' },
        ],
      },
    },
    [
      'metadata.taints[1]: Duplicate value: {"key":"a","effect":"NoExecute"}: taints must be unique by key and effect pair',
    ],
  ],
  'claim: an empty spec': [
    persistentVolumeClaims,
    {},
    ['spec.accessModes: Required value: at least 1 access mode is required', 'spec.resources[storage]: Required value'],
  ],
  'claim: zero size and an invalid selector': [
    persistentVolumeClaims,
    aClaim({
      resources: { requests: { storage: '0' } },
      selector: { matchExpressions: [{ key: 'a', operator: 'In' }] },
    }),
    [
      "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
      'spec.resources[storage]: Invalid value: "0": must be greater than zero',
    ],
  ],
  'claim: ReadWriteOncePod excludes other modes': [
    persistentVolumeClaims,
    aClaim({ accessModes: ['ReadWriteOncePod', 'ReadWriteOnce'] }),
    ['spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes'],
  ],
  'claim: an invalid data source': [
    persistentVolumeClaims,
    aClaim({ dataSourceRef: { apiGroup: '', kind: 'Secret', name: '' } }),
    [
      'spec.dataSource.name: Required value',
      `spec.dataSource: Invalid value: "Secret": must be 'PersistentVolumeClaim' when referencing the default apiGroup`,
      'spec.dataSourceRef.name: Required value',
      `spec.dataSourceRef: Invalid value: "Secret": must be 'PersistentVolumeClaim' when referencing the default apiGroup`,
    ],
  ],
  'claim: two different data sources': [
    persistentVolumeClaims,
    aClaim({
      dataSource: { kind: 'PersistentVolumeClaim', name: 'a' },
      dataSourceRef: { kind: 'PersistentVolumeClaim', name: 'b' },
    }),
    ['spec: Invalid value: "dataSource": must match dataSourceRef'],
  ],
  'volume: a host path must not contain backsteps': [
    persistentVolumes,
    aVolume({ hostPath: { path: '/a/../b' } }),
    [`spec.hostPath.path: Invalid value: "/a/../b": must not contain '..'`],
  ],
  'volume: an NFS path must be absolute': [
    persistentVolumes,
    aVolume({ hostPath: undefined, nfs: { server: '', path: 'd' } }),
    ['spec.nfs.server: Required value', 'spec.nfs.path: Invalid value: "d": must be an absolute path'],
  ],
  'volume: a CSI source needs driver and handle': [
    persistentVolumes,
    aVolume({ hostPath: undefined, csi: { driver: '', volumeHandle: '' } }),
    ['spec.csi.driver: Required value', 'spec.csi.volumeHandle: Required value'],
  ],
  'volume: more than one source': [
    persistentVolumes,
    aVolume({ nfs: { server: 's', path: '/' } }),
    ['spec.nfs: Forbidden: may not specify more than 1 volume type'],
  ],
  'volume: no source': [
    persistentVolumes,
    aVolume({ hostPath: undefined }),
    ['spec: Required value: must specify a volume type'],
  ],
  'volume: a local volume needs node affinity': [
    persistentVolumes,
    aVolume({ hostPath: undefined, local: { path: '/d' } }),
    ['spec.nodeAffinity: Required value: Local volume requires node affinity'],
  ],
  'volume: storage is the only capacity': [
    persistentVolumes,
    aVolume({ capacity: { cpu: '1' } }),
    ['spec.capacity: Unsupported value: {"cpu":"1"}: supported values: "storage"'],
  ],
  'storage class: the provisioner is required': [storageClasses, {}, ['provisioner: Required value']],
  'quota: negative and unknown resources': [
    resourceQuotas,
    { spec: { hard: { pods: '-1', 'count/gadgets.example.com': '1', cats: '1' } } },
    [
      'spec.hard[pods]: Invalid value: "-1": must be greater than or equal to 0',
      'spec.hard[cats]: Invalid value: "cats": must be a standard resource type or fully qualified',
      'spec.hard[cats]: Invalid value: "cats": must be a standard resource for quota',
    ],
  ],
  'quota: scopes that are unknown, contradict each other or do not apply': [
    resourceQuotas,
    {
      spec: {
        hard: { pods: '1', 'requests.storage': '1Gi', 'count/jobs.batch': '1500m' },
        scopes: ['BestEffort', 'NotBestEffort', 'Sunny'],
        scopeSelector: { matchExpressions: [{ scopeName: 'PriorityClass', operator: 'In' }] },
      },
    },
    [
      'spec.hard[count/jobs.batch]: Invalid value: "1500m": must be an integer',
      'spec.scopes: Invalid value: ["BestEffort","NotBestEffort","Sunny"]: unsupported scope applied to resource',
      'spec.scopes: Invalid value: ["BestEffort","NotBestEffort","Sunny"]: unsupported scope applied to resource',
      'spec.scopes: Invalid value: ["BestEffort","NotBestEffort","Sunny"]: unsupported scope',
      'spec.scopes: Invalid value: ["BestEffort","NotBestEffort","Sunny"]: conflicting scopes',
      'spec.scopeSelector.matchExpressions: Invalid value: {"matchExpressions":[{"scopeName":"PriorityClass","operator":"In"}]}: unsupported scope applied to resource',
      "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
    ],
  ],
  'limit range: values that contradict each other': [
    limitRanges,
    {
      spec: {
        limits: [
          { type: 'Container', min: { cpu: '2' }, max: { cpu: '1' } },
          { type: 'Pod', default: { cpu: '1' }, maxLimitRequestRatio: { memory: '500m' } },
          { type: 'Pod', max: { cats: '1' } },
          { type: 'PersistentVolumeClaim' },
          { type: 'Cat' },
        ],
      },
    },
    [
      'spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1',
      'spec.limits[0].defaultRequest[cpu]: Invalid value: "1": min value 2 is greater than default request value 1',
      'spec.limits[0].default[cpu]: Invalid value: "2": min value 2 is greater than default value 1',
      "spec.limits[1].default: Forbidden: may not be specified when `type` is 'Pod'",
      'spec.limits[1].maxLimitRequestRatio[memory]: Invalid value: "500m": ratio 500m is less than 1',
      'spec.limits[2].type: Duplicate value: "Pod"',
      'spec.limits[2].max[cats]: Invalid value: "cats": must be a standard resource type or fully qualified',
      'spec.limits[2].max[cats]: Invalid value: "cats": must be a standard resource for containers',
      'spec.limits[3].limits: Required value: either minimum or maximum storage value is required, but neither was provided',
      'spec.limits[4].type: Invalid value: "Cat": must be a standard limit type or fully qualified',
    ],
  ],
  'lease: invalid duration and transitions': [
    leases,
    { spec: { leaseDurationSeconds: 0, leaseTransitions: -1 } },
    [
      'spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0',
      'spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0',
    ],
  ],
  'job: the restart policy must not be Always': [
    jobs,
    aJob({}, 'Always'),
    ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
  ],
  'job: inconsistent counts': [
    jobs,
    aJob({ parallelism: -1, maxFailedIndexes: 1 }),
    [
      'spec.parallelism: Invalid value: -1: must be greater than or equal to 0',
      'spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified',
      'spec.maxFailedIndexes: Invalid value: 1: requires indexed completion mode',
    ],
  ],
  'job: a custom selector without manualSelector': [
    jobs,
    {
      spec: {
        selector: { matchLabels: { app: 'x' } },
        template: {
          metadata: { labels: { app: 'x', 'job-name': 'other' } },
          spec: { restartPolicy: 'Never', containers: [{ name: 'a', image: 'i' }] },
        },
      },
    },
    [
      `spec.template.metadata.labels[job-name]: Invalid value: {"controller-uid":"${UID}","job-name":"other","batch.kubernetes.io/controller-uid":"${UID}","batch.kubernetes.io/job-name":"one","app":"x"}: must be 'one'`,
      `spec.selector: Invalid value: {"matchLabels":{"batch.kubernetes.io/controller-uid":"${UID}","app":"x"}}: \`selector\` not auto-generated`,
    ],
  ],
  'job: a manual selector must match the template': [
    jobs,
    aJob({ manualSelector: true, selector: { matchLabels: { app: 'x' } } }),
    ['spec.template.metadata.labels: Invalid value: {}: `selector` does not match template `labels`'],
  ],
  'job: no template': [
    jobs,
    {},
    [
      'spec.template.spec.containers: Required value',
      'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
    ],
  ],
  'role: a rule needs verbs, groups and resources': [
    roles,
    { rules: [{ verbs: [] }] },
    [
      'rules[0].verbs: Required value: verbs must contain at least one value',
      'rules[0].apiGroups: Required value: resource rules must supply at least one api group',
      'rules[0].resources: Required value: resource rules must supply at least one resource',
    ],
  ],
  'role: non-resource URLs are rejected': [
    roles,
    { rules: [{ verbs: ['get'], nonResourceURLs: ['/metrics'] }] },
    [
      'rules[0].nonResourceURLs: Invalid value: []string{"/metrics"}: namespaced rules cannot apply to non-resource URLs',
    ],
  ],
  'cluster role: non-resource URLs are allowed': [
    clusterRoles,
    { rules: [{ verbs: ['get'], nonResourceURLs: ['/metrics'] }] },
    [],
  ],
  'cluster role binding: invalid role and subjects': [
    clusterRoleBindings,
    {
      roleRef: { kind: 'Role', name: 'r' },
      subjects: [
        { kind: 'ServiceAccount', name: 'ci' },
        { kind: 'Robot', name: 'x' },
      ],
    },
    [
      'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
      'subjects[0].namespace: Required value',
      'subjects[1].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"',
    ],
  ],
  'priority class: system names and values are reserved': [
    priorityClasses,
    { metadata: { name: 'system-mine' }, value: 1 },
    [
      "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: system-mine is not a known system priority class",
    ],
  ],
  'priority class: known system classes are allowed': [
    priorityClasses,
    { metadata: { name: 'system-node-critical' }, value: 2_000_001_000 },
    [],
  ],
  'priority class: too high': [
    priorityClasses,
    { value: 1_000_000_001 },
    ['value: Forbidden: maximum allowed value of a user defined priority is 1000000000'],
  ],
  'disruption budget: both limits, with invalid values': [
    podDisruptionBudgets,
    { spec: { minAvailable: 'some', maxUnavailable: '101%' } },
    [
      'spec: Invalid value: {"minAvailable":"some","maxUnavailable":"101%"}: minAvailable and maxUnavailable cannot be both set',
      "spec.minAvailable: Invalid value: \"some\": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
      'spec.maxUnavailable: Invalid value: "101%": must not be greater than 100%',
    ],
  ],
  'policy: an empty spec': [
    validatingAdmissionPolicies,
    {},
    [
      'spec.matchConstraints: Required value',
      'spec.validations: Required value: validations or auditAnnotations must contain at least one item',
      'spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item',
    ],
  ],
  'policy: invalid expressions, variables and messages': [
    validatingAdmissionPolicies,
    aPolicy({ validations: [{ expression: ' ', message: 'a\nb' }], variables: [{ name: '1a', expression: '1' }] }),
    [
      'spec.variables[0].name: Invalid value: "1a": must be a valid CEL identifier',
      'spec.validations[0].expression: Required value: expression is not specified',
      'spec.validations[0].message: Invalid value: "a\\nb": must not contain line breaks',
    ],
  ],
  'policy: invalid resource rules': [
    validatingAdmissionPolicies,
    aPolicy({
      matchConstraints: {
        resourceRules: [{ operations: ['*', 'CREATE'], apiVersions: [''], resources: ['*', 'pods'] }],
      },
    }),
    [
      `spec.matchConstraints.resourceRules[0].operations: Invalid value: ["*","CREATE"]: if '*' is present, must not specify other operations`,
      'spec.matchConstraints.resourceRules[0].apiGroups: Required value',
      'spec.matchConstraints.resourceRules[0].apiVersions[0]: Required value',
      `spec.matchConstraints.resourceRules[0].resources: Invalid value: ["*","pods"]: if '*' is present, must not specify other resources without subresources`,
    ],
  ],
  'policy binding: both Deny and Warn': [
    validatingAdmissionPolicyBindings,
    { spec: { policyName: 'p', validationActions: ['Deny', 'Warn'], paramRef: {} } },
    [
      'spec.paramRef: Required value: one of name or selector must be specified',
      'spec.paramRef.parameterNotFoundAction: Required value',
      'spec.validationActions: Invalid value: ["Deny","Warn"]: must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)',
    ],
  ],
  'webhook: a valid configuration': [validatingWebhookConfigurations, aWebhook({}), []],
  'webhook: a short name, no side effects and two addresses': [
    validatingWebhookConfigurations,
    aWebhook({
      name: 'check',
      sideEffects: undefined,
      timeoutSeconds: 31,
      clientConfig: { url: 'https://a', service: { name: 's', namespace: 'n' } },
      admissionReviewVersions: ['v2'],
    }),
    [
      'webhooks[0].sideEffects: Required value',
      'webhooks[0].name: Invalid value: "check": should be a domain with at least three segments separated by dots',
      'webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds',
      'webhooks[0].clientConfig: Required value: exactly one of url or service is required',
      'webhooks[0].admissionReviewVersions: Invalid value: ["v2"]: must include at least one of v1, v1beta1',
    ],
  ],
  'webhook: plain http with a query': [
    validatingWebhookConfigurations,
    aWebhook({ clientConfig: { url: 'http://a/?x=1' } }),
    [
      `webhooks[0].clientConfig.url: Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]`,
      'webhooks[0].clientConfig.url: Invalid value: "x=1": query parameters are not permitted in the URL',
    ],
  ],
  'API service: invalid name and priorities': [
    apiServices,
    { spec: { version: 'v1', group: 'example.com', groupPriorityMinimum: 0, versionPriority: 1001 } },
    [
      'metadata.name: Invalid value: "one": must be `spec.version+"."+spec.group`: "v1.example.com"',
      'spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000',
      'spec.versionPriority: Invalid value: 1001: must be positive and less than 1000',
    ],
  ],
  'service: ports': [
    services,
    { spec: { ports: [{ port: 99999, targetPort: 99999, name: 'a' }] } },
    [
      'spec.ports[0].port: Invalid value: 99999: must be between 1 and 65535, inclusive',
      'spec.ports[0].targetPort: Invalid value: 99999: must be between 1 and 65535, inclusive',
    ],
  ],
};

for (const [name, [resource, fields, want]] of Object.entries(cases)) {
  test(`rules of a ${name}`, () => assert.deepEqual(newObjectErrors(resource, fields), want));
}
