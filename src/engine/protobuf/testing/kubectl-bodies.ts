/**
 * Bodies that kubectl 1.32 sent to a recording server, and the objects they encode: the output of the same command with
 * `--dry-run=client -o json`, without its `creationTimestamp: null`. Reviews and tokens have no dry run; these were
 * checked by hand against the command line and the Go types.
 */
export interface KubectlBody {
  readonly base64: string;
  readonly object: Record<string, unknown>;
}

export const kubectlBodies: Record<string, KubectlBody> = {
  'kubectl create namespace green': {
    base64: 'azhzAAoPCgJ2MRIJTmFtZXNwYWNlEh0KFQoFZ3JlZW4SABoAIgAqADIAOABCABIAGgIKABoAIgA=',
    object: { kind: 'Namespace', apiVersion: 'v1', metadata: { name: 'green' }, spec: {}, status: {} },
  },
  'kubectl create configmap settings --from-literal=colour=blue --from-literal=empty=': {
    base64:
      'azhzAAoPCgJ2MRIJQ29uZmlnTWFwEjUKGAoIc2V0dGluZ3MSABoAIgAqADIAOABCABIOCgZjb2xvdXISBGJsdWUSCQoFZW1wdHkSABoAIgA=',
    object: {
      kind: 'ConfigMap',
      apiVersion: 'v1',
      metadata: { name: 'settings' },
      data: { colour: 'blue', empty: '' },
    },
  },
  'kubectl create secret generic keys --from-literal=token=s3cret --from-literal=none=': {
    base64: 'azhzAAoMCgJ2MRIGU2VjcmV0EjMKFAoEa2V5cxIAGgAiACoAMgA4AEIAEggKBG5vbmUSABIPCgV0b2tlbhIGczNjcmV0GgAaACIA',
    object: { kind: 'Secret', apiVersion: 'v1', metadata: { name: 'keys' }, data: { none: '', token: 'czNjcmV0' } },
  },
  'kubectl create serviceaccount robot': {
    base64: 'azhzAAoUCgJ2MRIOU2VydmljZUFjY291bnQSFwoVCgVyb2JvdBIAGgAiACoAMgA4AEIAGgAiAA==',
    object: { kind: 'ServiceAccount', apiVersion: 'v1', metadata: { name: 'robot' } },
  },
  'kubectl create job once --image=busybox -- echo done': {
    base64:
      'azhzAAoPCghiYXRjaC92MRIDSm9iEooBChQKBG9uY2USABoAIgAqADIAOABCABJoMmYKEAoAEgAaACIAKgAyADgAQgASUhIvCgRvbmNlEgdidXN5Ym94GgRlY2hvGgRkb25lKgBCAGoAcgCAAQCIAQCQAQCiAQAaBU5ldmVyMgBCAEoAUgBYAGAAaACCAQCKAQCaAQDCAQAaCCAAKAAwADoAGgAiAA==',
    object: {
      kind: 'Job',
      apiVersion: 'batch/v1',
      metadata: { name: 'once' },
      spec: {
        template: {
          metadata: {},
          spec: {
            containers: [{ name: 'once', image: 'busybox', command: ['echo', 'done'], resources: {} }],
            restartPolicy: 'Never',
          },
        },
      },
      status: {},
    },
  },
  'kubectl create role reader --verb=get,list --resource=pods --resource-name=a': {
    base64:
      'azhzAAokChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEgRSb2xlEjAKFgoGcmVhZGVyEgAaACIAKgAyADgAQgASFgoDZ2V0CgRsaXN0EgAaBHBvZHMiAWEaACIA',
    object: {
      kind: 'Role',
      apiVersion: 'rbac.authorization.k8s.io/v1',
      metadata: { name: 'reader' },
      rules: [{ verbs: ['get', 'list'], apiGroups: [''], resources: ['pods'], resourceNames: ['a'] }],
    },
  },
  'kubectl create clusterrole viewer --verb=get --non-resource-url=/healthz': {
    base64:
      'azhzAAorChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEgtDbHVzdGVyUm9sZRIpChYKBnZpZXdlchIAGgAiACoAMgA4AEIAEg8KA2dldCoIL2hlYWx0aHoaACIA',
    object: {
      kind: 'ClusterRole',
      apiVersion: 'rbac.authorization.k8s.io/v1',
      metadata: { name: 'viewer' },
      rules: [{ verbs: ['get'], nonResourceURLs: ['/healthz'] }],
    },
  },
  'kubectl create clusterrole agg --aggregation-rule=a=b': {
    base64:
      'azhzAAorChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEgtDbHVzdGVyUm9sZRIhChMKA2FnZxIAGgAiACoAMgA4AEIAGgoKCAoGCgFhEgFiGgAiAA==',
    object: {
      kind: 'ClusterRole',
      apiVersion: 'rbac.authorization.k8s.io/v1',
      metadata: { name: 'agg' },
      rules: null,
      aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] },
    },
  },
  'kubectl create rolebinding readers --role=reader --user=ann --serviceaccount=default:robot': {
    base64:
      'azhzAAorChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEgtSb2xlQmluZGluZxKSAQoXCgdyZWFkZXJzEgAaACIAKgAyADgAQgASKAoEVXNlchIZcmJhYy5hdXRob3JpemF0aW9uLms4cy5pbxoDYW5uIgASIgoOU2VydmljZUFjY291bnQSABoFcm9ib3QiB2RlZmF1bHQaKQoZcmJhYy5hdXRob3JpemF0aW9uLms4cy5pbxIEUm9sZRoGcmVhZGVyGgAiAA==',
    object: {
      kind: 'RoleBinding',
      apiVersion: 'rbac.authorization.k8s.io/v1',
      metadata: { name: 'readers' },
      subjects: [
        { kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'ann' },
        { kind: 'ServiceAccount', name: 'robot', namespace: 'default' },
      ],
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' },
    },
  },
  'kubectl create quota limits --hard=cpu=1500m,memory=4Gi,pods=10 --scopes=BestEffort': {
    base64:
      'azhzAAoTCgJ2MRINUmVzb3VyY2VRdW90YRJXChYKBmxpbWl0cxIAGgAiACoAMgA4AEIAEjsKDgoDY3B1EgcKBTE1MDBtCg8KBm1lbW9yeRIFCgM0R2kKDAoEcG9kcxIECgIxMBIKQmVzdEVmZm9ydBoAGgAiAA==',
    object: {
      kind: 'ResourceQuota',
      apiVersion: 'v1',
      metadata: { name: 'limits' },
      spec: { hard: { cpu: '1500m', memory: '4Gi', pods: '10' }, scopes: ['BestEffort'] },
      status: {},
    },
  },
  'kubectl create priorityclass high --value=1000 --description=first --preemption-policy=Never': {
    base64:
      'azhzAAolChRzY2hlZHVsaW5nLms4cy5pby92MRINUHJpb3JpdHlDbGFzcxIpChQKBGhpZ2gSABoAIgAqADIAOABCABDoBxgAIgVmaXJzdCoFTmV2ZXIaACIA',
    object: {
      kind: 'PriorityClass',
      apiVersion: 'scheduling.k8s.io/v1',
      metadata: { name: 'high' },
      value: 1000,
      description: 'first',
      preemptionPolicy: 'Never',
    },
  },
  'kubectl create pdb keep --selector=app=web --min-available=50%': {
    base64:
      'azhzAAogCglwb2xpY3kvdjESE1BvZERpc3J1cHRpb25CdWRnZXQSPQoUCgRrZWVwEgAaACIAKgAyADgAQgASGQoJCAEQABoDNTAlEgwKCgoDYXBwEgN3ZWIaCggAGAAgACgAMAAaACIA',
    object: {
      kind: 'PodDisruptionBudget',
      apiVersion: 'policy/v1',
      metadata: { name: 'keep' },
      spec: { minAvailable: '50%', selector: { matchLabels: { app: 'web' } } },
      status: { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 },
    },
  },
  'kubectl create pdb keep2 --selector=app=web --max-unavailable=1': {
    base64:
      'azhzAAogCglwb2xpY3kvdjESE1BvZERpc3J1cHRpb25CdWRnZXQSOwoVCgVrZWVwMhIAGgAiACoAMgA4AEIAEhYSDAoKCgNhcHASA3dlYhoGCAAQARoAGgoIABgAIAAoADAAGgAiAA==',
    object: {
      kind: 'PodDisruptionBudget',
      apiVersion: 'policy/v1',
      metadata: { name: 'keep2' },
      spec: { selector: { matchLabels: { app: 'web' } }, maxUnavailable: 1 },
      status: { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 },
    },
  },
  'kubectl create token robot --duration=10m --audience=x --bound-object-kind=Pod --bound-object-name=p --bound-object-uid=u1':
    {
      base64:
        'azhzAAooChhhdXRoZW50aWNhdGlvbi5rOHMuaW8vdjESDFRva2VuUmVxdWVzdBIyChAKABIAGgAiACoAMgA4AEIAEhgKAXgaEAoDUG9kEgJ2MRoBcCICdTEg2AQaBAoAEgAaACIA',
      object: {
        kind: 'TokenRequest',
        apiVersion: 'authentication.k8s.io/v1',
        metadata: {},
        spec: {
          audiences: ['x'],
          expirationSeconds: 600,
          boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'p', uid: 'u1' },
        },
        status: { token: '', expirationTimestamp: null },
      },
    },
  'kubectl create token robot2': {
    base64: 'azhzAAooChhhdXRoZW50aWNhdGlvbi5rOHMuaW8vdjESDFRva2VuUmVxdWVzdBIaChAKABIAGgAiACoAMgA4AEIAEgAaBAoAEgAaACIA',
    object: {
      kind: 'TokenRequest',
      apiVersion: 'authentication.k8s.io/v1',
      metadata: {},
      spec: { audiences: null, expirationSeconds: null, boundObjectRef: null },
      status: { token: '', expirationTimestamp: null },
    },
  },
  'kubectl create service nodeport web2 --tcp=80:http --node-port=30001': {
    base64:
      'azhzAAoNCgJ2MRIHU2VydmljZRJwCiEKBHdlYjISABoAIgAqADIAOABCAFoLCgNhcHASBHdlYjISRwogCgc4MC1odHRwEgNUQ1AYUCIKCAEQABoEaHR0cCix6gESCwoDYXBwEgR3ZWIyGgAiCE5vZGVQb3J0OgBCAFIAWgBgAGgAGgIKABoAIgA=',
    object: {
      kind: 'Service',
      apiVersion: 'v1',
      metadata: { name: 'web2', labels: { app: 'web2' } },
      spec: {
        ports: [{ name: '80-http', protocol: 'TCP', port: 80, targetPort: 'http', nodePort: 30001 }],
        selector: { app: 'web2' },
        type: 'NodePort',
      },
      status: { loadBalancer: {} },
    },
  },
  'kubectl auth can-i create pods': {
    base64:
      'azhzAAoyChdhdXRob3JpemF0aW9uLms4cy5pby92MRIXU2VsZlN1YmplY3RBY2Nlc3NSZXZpZXcSPwoQCgASABoAIgAqADIAOABCABIhCh8KB2RlZmF1bHQSBmNyZWF0ZRoAIgAqBHBvZHMyADoAGggIABIAGgAgABoAIgA=',
    object: {
      kind: 'SelfSubjectAccessReview',
      apiVersion: 'authorization.k8s.io/v1',
      metadata: {},
      spec: { resourceAttributes: { namespace: 'default', verb: 'create', resource: 'pods' } },
      status: { allowed: false },
    },
  },
  'kubectl auth can-i get /healthz': {
    base64:
      'azhzAAoyChdhdXRob3JpemF0aW9uLms4cy5pby92MRIXU2VsZlN1YmplY3RBY2Nlc3NSZXZpZXcSLwoQCgASABoAIgAqADIAOABCABIREg8KCC9oZWFsdGh6EgNnZXQaCAgAEgAaACAAGgAiAA==',
    object: {
      kind: 'SelfSubjectAccessReview',
      apiVersion: 'authorization.k8s.io/v1',
      metadata: {},
      spec: { nonResourceAttributes: { path: '/healthz', verb: 'get' } },
      status: { allowed: false },
    },
  },
  'kubectl auth whoami': {
    base64:
      'azhzAAotChhhdXRoZW50aWNhdGlvbi5rOHMuaW8vdjESEVNlbGZTdWJqZWN0UmV2aWV3EhoKEAoAEgAaACIAKgAyADgAQgASBgoECgASABoAIgA=',
    object: {
      kind: 'SelfSubjectReview',
      apiVersion: 'authentication.k8s.io/v1',
      metadata: {},
      status: { userInfo: {} },
    },
  },
};
