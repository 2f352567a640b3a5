/** One valid object for each kind, which the fuzzer changes: few objects made at random would pass the first check. */
import type { Loose } from '#test/support/test-api.ts';

const pod = {
  containers: [
    {
      name: 'web',
      image: 'nginx:1',
      ports: [{ containerPort: 80, name: 'http', protocol: 'TCP' }],
      env: [{ name: 'A', value: '1' }],
      resources: { requests: { cpu: '100m', memory: '64Mi' }, limits: { cpu: '1' } },
      volumeMounts: [{ name: 'data', mountPath: '/data' }],
    },
  ],
  volumes: [{ name: 'data', emptyDir: {} }],
  tolerations: [{ key: 'a', operator: 'Exists', effect: 'NoSchedule' }],
  restartPolicy: 'Never',
};

const webhook = {
  name: 'a.fuzz.local',
  clientConfig: { url: 'https://nobody.invalid/' },
  rules: [{ apiGroups: ['nobody.local'], apiVersions: ['*'], operations: ['*'], resources: ['*'] }],
  matchConditions: [{ name: 'never', expression: 'object.metadata.name == "x"' }],
  sideEffects: 'None',
  admissionReviewVersions: ['v1'],
  failurePolicy: 'Ignore',
  timeoutSeconds: 1,
};

const subject = { kind: 'User', name: 'u', apiGroup: 'rbac.authorization.k8s.io' };
const roleRef = (kind: string) => ({ apiGroup: 'rbac.authorization.k8s.io', kind, name: 'r' });
const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }];

/** By plural; objects of other kinds are generated from the schema. */
export const VALID_OBJECTS: Readonly<Record<string, Loose>> = {
  configmaps: { data: { a: '1' }, binaryData: { b: 'YQ==' } },
  secrets: { type: 'Opaque', data: { a: 'YQ==' }, stringData: { b: 'text' } },
  serviceaccounts: { secrets: [{ name: 's' }] },
  namespaces: { spec: { finalizers: ['kubernetes'] } },
  nodes: { spec: { podCIDR: '10.0.0.0/24', taints: [{ key: 'a', effect: 'NoSchedule' }] } },
  pods: { spec: pod },
  services: { spec: { ports: [{ port: 80, name: 'http' }], selector: { app: 'a' } } },
  events: { involvedObject: { kind: 'Pod', name: 'a', namespace: 'fuzz' }, reason: 'R', message: 'm', type: 'Normal' },
  persistentvolumeclaims: {
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName: 'fast' },
  },
  persistentvolumes: {
    spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/data' } },
  },
  limitranges: { spec: { limits: [{ type: 'Container', max: { memory: '1Gi' } }] } },
  resourcequotas: { spec: { hard: { pods: '10' } } },
  jobs: { spec: { template: { spec: pod }, completions: 1, parallelism: 1, backoffLimit: 2 } },
  leases: { spec: { holderIdentity: 'a', leaseDurationSeconds: 15, renewTime: '2026-01-01T00:00:00.000000Z' } },
  endpointslices: {
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.0.0.1'] }],
    ports: [{ port: 443, name: 'https' }],
  },
  poddisruptionbudgets: { spec: { minAvailable: '50%', selector: { matchLabels: { app: 'a' } } } },
  controllerrevisions: { data: { a: 1 }, revision: 1 },
  roles: { rules },
  clusterroles: { rules, aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] } },
  rolebindings: { subjects: [subject], roleRef: roleRef('Role') },
  clusterrolebindings: { subjects: [subject], roleRef: roleRef('ClusterRole') },
  priorityclasses: { value: 100, globalDefault: false, preemptionPolicy: 'Never' },
  storageclasses: { provisioner: 'fuzz.local/disk', parameters: { a: 'b' }, volumeBindingMode: 'Immediate' },
  validatingwebhookconfigurations: { webhooks: [webhook] },
  mutatingwebhookconfigurations: { webhooks: [{ ...webhook, reinvocationPolicy: 'Never' }] },
  validatingadmissionpolicies: {
    spec: {
      matchConstraints: {
        resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['configmaps'] }],
      },
      variables: [{ name: 'v', expression: 'size(object.metadata.name)' }],
      validations: [{ expression: 'variables.v < 300', messageExpression: "'too long'" }],
      auditAnnotations: [{ key: 'a', valueExpression: "'x'" }],
    },
  },
  validatingadmissionpolicybindings: { spec: { policyName: 'a', validationActions: ['Deny', 'Audit'] } },
  apiservices: {
    spec: { group: 'other.local', version: 'v1', groupPriorityMinimum: 100, versionPriority: 10 },
  },
  riches: {
    spec: { size: 3, name: 'a', tags: ['a', 'b'], parts: [{ name: 'a' }, { name: 'b', port: 81 }], free: { x: [1] } },
    status: { replicas: 1, selector: 'a=b', conditions: [{ type: 'Ready', status: 'True' }] },
  },
  frees: { anything: { goes: [1, 'two', null] } },
  subjectaccessreviews: { spec: { user: 'u', groups: ['g'], resourceAttributes: { verb: 'get', resource: 'pods' } } },
  selfsubjectaccessreviews: { spec: { nonResourceAttributes: { path: '/x', verb: 'get' } } },
  localsubjectaccessreviews: { spec: { user: 'u', resourceAttributes: { namespace: 'fuzz', verb: 'get' } } },
  selfsubjectrulesreviews: { spec: { namespace: 'fuzz' } },
  tokenreviews: { spec: { token: 'x.y.z', audiences: ['a'] } },
};
