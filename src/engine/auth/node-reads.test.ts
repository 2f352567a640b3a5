import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withNodeReads } from '#engine/auth/node-reads.ts';
import type { RbacAuthorizer } from '#engine/auth/rbac/rbac-authorizer.ts';
import type { Entry, Store } from '#engine/store/store.ts';

/** Allows everything, so that any refusal comes from the node authorizer. */
const allowAll = { authorize: () => ({ allowed: true }) } as unknown as RbacAuthorizer;

const pods: Readonly<Record<string, { metadata?: object; nodeName: string; [field: string]: unknown }>> = {
  'a/one': {
    nodeName: 'node-1',
    volumes: [
      { name: 's', secret: { secretName: 'disk-keys' } },
      { name: 'c', configMap: { name: 'settings' } },
      { name: 'p', projected: { sources: [{ secret: { name: 'projected' } }, { configMap: { name: 'root-ca' } }] } },
    ],
    containers: [{ name: 'x', env: [{ name: 'E', valueFrom: { secretKeyRef: { name: 'env', key: 'k' } } }] }],
  },
  'a/target': { nodeName: 'node-1', metadata: { ownerReferences: [{ uid: 'u3' }] } },
  'a/two': { nodeName: 'node-2', volumes: [{ name: 'only-a-name', secret: { secretName: 'elsewhere' } }] },
};
const custom: Readonly<Record<string, object>> = {
  'customresourcedefinitions.apiextensions.k8s.io gadgets.example.com': {
    metadata: {
      annotations: { 'selfsame.io/node-label': 'example.com/node', 'selfsame.io/node-fields': 'status.from,status.to' },
    },
  },
  'customresourcedefinitions.apiextensions.k8s.io records.example.com': {
    metadata: { annotations: { 'selfsame.io/node-companion': 'gadgets.example.com' } },
  },
  'records.example.com a/here': { metadata: {} },
  'records.example.com a/there': { metadata: {} },
  'gadgets.example.com a/here': { metadata: { namespace: 'a', uid: 'u1', labels: { 'example.com/node': 'node-1' } } },
  'gadgets.example.com a/there': { metadata: { namespace: 'a', uid: 'u2', labels: { 'example.com/node': 'node-2' } } },
  'gadgets.example.com a/leaving': { metadata: { namespace: 'a', uid: 'u4' }, status: { from: 'node-1' } },
  'gadgets.example.com a/arriving': { metadata: { namespace: 'a', uid: 'u3' } },
};
function stored(collection: string, id: string): Entry | undefined {
  const { metadata, ...spec } = (pods[id] ?? {}) as { metadata?: object };
  const object = collection === 'pods' ? pods[id] && { metadata, spec } : custom[`${collection} ${id}`];
  return object && ({ bytes: Buffer.from(JSON.stringify(object)) } as Entry);
}
const store = {
  get: stored,
  latest: stored,
  list: (_: string, { prefix = '' } = {}) => ({
    entries: Object.entries(pods)
      .filter(([id]) => id.startsWith(prefix))
      .map(([, { metadata, ...spec }]) => ({ bytes: Buffer.from(JSON.stringify({ metadata, spec })) }) as Entry),
  }),
} as unknown as Store;

const NODE = { name: 'system:node:node-1', groups: ['system:nodes'] };
const authorizer = withNodeReads(allowAll, store);
const mayRead = (verb: string, name: string, selectors: object = {}, resource = 'gadgets') =>
  authorizer.authorize(NODE, {
    ...{ verb, group: 'example.com', version: 'v1', resource, subresource: '', namespace: 'a', name },
    ...selectors,
  }).allowed;
const mayListPods = (fieldSelector: string) =>
  authorizer.authorize(NODE, {
    ...{ verb: 'list', group: '', version: 'v1', resource: 'pods', subresource: '', namespace: '', name: '' },
    fieldSelector,
  }).allowed;
const isAllowed = (verb: string, resource: string, name: string, { user = NODE, namespace = 'a' } = {}) =>
  authorizer.authorize(user, { verb, group: '', version: 'v1', resource, subresource: '', namespace, name }).allowed;

const allowed: Record<string, boolean> = {
  'a Secret of a volume': isAllowed('get', 'secrets', 'disk-keys'),
  'a ConfigMap of a volume': isAllowed('get', 'configmaps', 'settings'),
  'a Secret of a projected volume': isAllowed('get', 'secrets', 'projected'),
  'a ConfigMap of a projected volume': isAllowed('get', 'configmaps', 'root-ca'),
  'a Secret of the environment': isAllowed('get', 'secrets', 'env'),
  'other resources': isAllowed('list', 'services', ''),
  'its pod': isAllowed('get', 'pods', 'one'),
  'a list of its pods': mayListPods('spec.nodeName=node-1'),
  'a list of some of its pods': mayListPods('metadata.name=one,spec.nodeName=node-1'),
  'an object whose label names it': mayRead('get', 'here'),
  'an object that owns one of its pods': mayRead('get', 'arriving'),
  'an object with a field that names it': mayRead('get', 'leaving'),
  'the companion of an object of its own': mayRead('get', 'here', {}, 'records'),
  'an object that does not exist': mayRead('get', 'nowhere'),
  'a list of objects whose label names it': mayRead('watch', '', { labelSelector: 'example.com/node=node-1,app' }),
  'as another user': isAllowed('list', 'secrets', '', { user: { name: 'alice', groups: [] } }),
};
for (const [name, found] of Object.entries(allowed)) test(`a node reads ${name}`, () => assert.equal(found, true));

const refused: Record<string, boolean> = {
  'a Secret of another node': isAllowed('get', 'secrets', 'elsewhere'),
  'a ConfigMap with the name of a Secret': isAllowed('get', 'configmaps', 'disk-keys'),
  'a Secret of another namespace': isAllowed('get', 'secrets', 'disk-keys', { namespace: 'b' }),
  'a Secret with the name of a volume': isAllowed('get', 'secrets', 'only-a-name'),
  'a pod of another node': isAllowed('get', 'pods', 'two'),
  'a list of all pods': mayListPods(''),
  'a list of pods of another node': mayListPods('spec.nodeName=node-2'),
  'a list of all pods but some': mayListPods('spec.nodeName!=node-1'),
  'an object whose label names another node': mayRead('get', 'there'),
  'the companion of an object of another node': mayRead('get', 'there', {}, 'records'),
  'a list of companions': mayRead('list', '', {}, 'records'),
  'a list of all objects': mayRead('list', ''),
  'a list of objects of another node': mayRead('list', '', { labelSelector: 'example.com/node=node-2' }),
  'a list of objects of two nodes': mayRead('list', '', { labelSelector: 'example.com/node in (node-1,node-2)' }),
  'a list with an invalid selector': mayRead('list', '', { labelSelector: 'example.com/node=node-1,((' }),
  'a list of Secrets': isAllowed('list', 'secrets', ''),
  'a Secret, if its user name is not that of a node': isAllowed('get', 'secrets', 'disk-keys', {
    user: { name: 'somebody', groups: ['system:nodes'] },
  }),
};
for (const [name, found] of Object.entries(refused))
  test(`a node does not read ${name}`, () => assert.equal(found, false));

for (const verb of ['update', 'patch', 'delete']) {
  const found: Record<string, [boolean, boolean]> = {
    'its pod': [isAllowed(verb, 'pods', 'one'), true],
    'a pod of another node': [isAllowed(verb, 'pods', 'two'), false],
    'an object whose label names it': [mayRead(verb, 'here'), true],
    'an object whose label names another node': [mayRead(verb, 'there'), false],
    'the companion of an object of another node': [mayRead(verb, 'there', {}, 'records'), false],
    'a Secret that its pod references': [isAllowed(verb, 'secrets', 'disk-keys'), false],
  };
  for (const [name, [is, want]] of Object.entries(found)) {
    test(`a node ${want ? 'may' : 'may not'} ${verb} ${name}`, () => assert.equal(is, want));
  }
}
