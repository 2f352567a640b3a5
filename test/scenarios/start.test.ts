/** Starts on existing data: no stored object may prevent the engine from starting. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openMemoryStore } from '#engine/store/testing/memory-store.ts';
import type { Store } from '#engine/store/store.ts';
import { startTestApi, type Loose, type TestApi } from '#test/support/test-api.ts';

const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const ADMISSION = '/apis/admissionregistration.k8s.io/v1';

/** A webhook for everything, on a server that does not exist. */
const deadWebhook: Loose = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingWebhookConfiguration',
  metadata: { name: 'dead' },
  webhooks: [
    {
      name: 'dead.golden.local',
      clientConfig: { url: 'https://127.0.0.1:1/' },
      rules: [{ apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*'] }],
      sideEffects: 'None',
      admissionReviewVersions: ['v1'],
    },
  ],
};

const forbidding: Loose[] = [
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: 'never' },
    spec: {
      matchConstraints: {
        resourceRules: [{ apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*'] }],
      },
      validations: [{ expression: 'false' }],
    },
  },
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name: 'never' },
    spec: { policyName: 'never', validationActions: ['Deny'] },
  },
];

const stolenGroup: Loose = {
  apiVersion: 'apiregistration.k8s.io/v1',
  kind: 'APIService',
  metadata: { name: 'v1.rbac.authorization.k8s.io' },
  spec: {
    group: 'rbac.authorization.k8s.io',
    version: 'v1',
    groupPriorityMinimum: 1,
    versionPriority: 1,
    insecureSkipTLSVerify: true,
    service: { namespace: 'default', name: 'nobody' },
  },
};

const brokenObjects: Record<string, (api: TestApi) => Promise<unknown>> = {
  'a webhook for everything whose server is down': (api) =>
    api.ok('POST', `${ADMISSION}/validatingwebhookconfigurations`, { body: deadWebhook }),
  'a policy that refuses everything': async (api) => {
    await api.ok('POST', `${ADMISSION}/validatingadmissionpolicies`, { body: forbidding[0] });
    await api.ok('POST', `${ADMISSION}/validatingadmissionpolicybindings`, { body: forbidding[1] });
  },
  'an APIService that would take over one of our groups': async (api) => {
    const url = '/apis/apiregistration.k8s.io/v1/apiservices';
    await api.call('DELETE', `${url}/v1.rbac.authorization.k8s.io`);
    await api.call('POST', url, { body: stolenGroup });
    await api.call('PATCH', `${url}/v1.rbac.authorization.k8s.io`, { body: { spec: stolenGroup.spec } });
    assert.equal((await api.call('GET', `${RBAC}/clusterroles`)).status, 200, 'the engine still serves the group');
  },
};

for (const [name, put] of Object.entries(brokenObjects)) {
  test(`the engine starts and repairs its roles despite ${name}`, async () => {
    const store = await openMemoryStore();
    const first = await startTestApi({ store: withoutClose(store) });
    await first.settle();
    await first.ok('DELETE', `${RBAC}/clusterrolebindings/system:discovery`);
    await put(first);
    await first.stop();
    const second = await startTestApi({ store });
    try {
      assert.equal((await second.call('GET', `${RBAC}/clusterrolebindings/system:discovery`)).status, 200);
    } finally {
      await second.stop();
    }
  });
}

/** Keeps the store open for the next start. */
function withoutClose(store: Store): Store {
  return new Proxy(store, {
    get(target, name) {
      if (name === 'close') return async () => {};
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value as () => unknown).bind(target) : value;
    },
  });
}

test('a definition in a built-in group is never served, whatever its status says', async () => {
  const api = await startTestApi();
  try {
    const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
    await api.ok('POST', crds, {
      body: {
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'CustomResourceDefinition',
        metadata: {
          name: 'clusterroles.rbac.authorization.k8s.io',
          annotations: { 'api-approved.kubernetes.io': 'unapproved, testing' },
        },
        spec: {
          group: 'rbac.authorization.k8s.io',
          scope: 'Cluster',
          names: { plural: 'clusterroles', kind: 'OtherRole' },
          versions: [{ name: 'v9', served: true, storage: true, schema }],
        },
      },
    });
    const now = new Date(0).toISOString();
    const condition = (type: string) => ({
      type,
      status: 'True',
      reason: 'Mine',
      message: '',
      lastTransitionTime: now,
    });
    const status = {
      conditions: [condition('NamesAccepted'), condition('Established')],
      acceptedNames: { plural: 'clusterroles', kind: 'OtherRole' },
      storedVersions: ['v9'],
    };
    await api.call('PATCH', `${crds}/clusterroles.rbac.authorization.k8s.io/status`, { body: { status } });
    const body = { apiVersion: 'rbac.authorization.k8s.io/v9', kind: 'OtherRole', metadata: { name: 'x' }, rules: 5 };
    const made = await api.call('POST', '/apis/rbac.authorization.k8s.io/v9/clusterroles', { body });
    assert.equal(made.status, 404);
    assert.equal((await api.call('GET', `${RBAC}/clusterroles/view`)).status, 200);
  } finally {
    await api.stop();
  }
});
