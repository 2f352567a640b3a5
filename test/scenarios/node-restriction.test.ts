/** Nodes through the whole core: all nodes share a role, and admission separates them. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startTestApi, type TestResponse, type Loose, type TestApi } from '#test/support/test-api.ts';

const N1 = { user: { name: 'system:node:n1', groups: ['system:nodes', 'system:authenticated'] } };
const PODS = '/api/v1/namespaces/default/pods';
const TOKEN = '/api/v1/namespaces/default/serviceaccounts/default/token';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';

const aNode = (name: string, spec: Loose = {}) => ({ apiVersion: 'v1', kind: 'Node', metadata: { name }, spec });
const aLease = (name: string) => ({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name } });
const tokenRequest = (spec: Loose = {}) => ({ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec });

const cases: Record<
  string,
  { do: (api: TestApi, uid: (pod: string) => string) => Promise<TestResponse>; want: number }
> = {
  'a token for any account': { do: (api) => api.call('POST', TOKEN, { ...N1, body: tokenRequest() }), want: 403 },
  'a token for a system account': {
    do: (api) =>
      api.call('POST', '/api/v1/namespaces/kube-system/serviceaccounts/default/token', { ...N1, body: tokenRequest() }),
    want: 403,
  },
  'a token for its pod': { do: (api, uid) => requestToken(api, 'mine', uid('mine')), want: 201 },
  'a token for a pod of another node': { do: (api, uid) => requestToken(api, 'other', uid('other')), want: 403 },
  'the status of its pod': { do: (api) => patchStatus(api, `${PODS}/mine`), want: 200 },
  'the status of a pod of another node': { do: (api) => patchStatus(api, `${PODS}/other`), want: 403 },
  'the deletion of a pod of another node': {
    do: (api) => api.call('DELETE', `${PODS}/other?dryRun=All`, N1),
    want: 403,
  },
  'the deletion of its pod': { do: (api) => api.call('DELETE', `${PODS}/mine?dryRun=All`, N1), want: 200 },
  'its own status': { do: (api) => patchStatus(api, '/api/v1/nodes/n1'), want: 200 },
  'the status of another node': { do: (api) => patchStatus(api, '/api/v1/nodes/n2'), want: 403 },
  'its taints': {
    do: (api) => api.call('PATCH', '/api/v1/nodes/n1', { ...N1, body: { spec: { taints: null } } }),
    want: 403,
  },
  'its own creation': {
    do: (api) => api.call('POST', '/api/v1/nodes?dryRun=All', { ...N1, body: aNode('n1') }),
    want: 409,
  },
  'the creation of another node': {
    do: (api) => api.call('POST', '/api/v1/nodes?dryRun=All', { ...N1, body: aNode('n3') }),
    want: 403,
  },
  'its lease': { do: (api) => api.call('POST', LEASES, { ...N1, body: aLease('n1') }), want: 201 },
  'the lease of another node': {
    do: (api) => api.call('POST', LEASES, { ...N1, body: aLease('n2') }),
    want: 403,
  },
};

function requestToken(api: TestApi, name: string, uid: string): Promise<TestResponse> {
  const boundObjectRef = { apiVersion: 'v1', kind: 'Pod', name, uid };
  return api.call('POST', TOKEN, { ...N1, body: tokenRequest({ boundObjectRef }) });
}

function patchStatus(api: TestApi, url: string): Promise<TestResponse> {
  return api.call('PATCH', `${url}/status`, { ...N1, body: { status: { conditions: [] } } });
}

describe('a node may write', () => {
  let api: TestApi;
  const uids = new Map<string, string>();
  before(async () => {
    api = await startTestApi();
    for (const name of ['n1', 'n2']) {
      const taints = [{ key: 'kept', effect: 'NoSchedule' }];
      await api.ok('POST', '/api/v1/nodes', { body: aNode(name, { taints }) });
    }
    for (const [name, nodeName] of Object.entries({ mine: 'n1', other: 'n2' })) {
      const spec = { nodeName, containers: [{ name: 'c', image: 'i' }] };
      const pod: Loose = await api.ok('POST', PODS, {
        body: { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec },
      });
      uids.set(name, pod.metadata.uid);
    }
  });
  after(() => api.stop());

  for (const [sentence, { do: act, want }] of Object.entries(cases)) {
    it(`${sentence}: ${want}`, async () => {
      const { status, body } = await act(api, (pod) => uids.get(pod)!);
      assert.equal(status, want, JSON.stringify(body.message));
    });
  }
});
