import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withNodeReads } from '#engine/auth/node-reads.ts';
import type { RbacAuthorizer } from '#engine/auth/rbac/rbac-authorizer.ts';
import type { Entry, Store } from '#engine/store/store.ts';

/** Allows everything: what is refused is refused here. */
const generous = { authorize: () => ({ allowed: true }) } as unknown as RbacAuthorizer;

const pods: Readonly<Record<string, object>> = {
  'a/one': {
    nodeName: 'node-1',
    volumes: [
      { name: 's', secret: { secretName: 'disk-keys' } },
      { name: 'c', configMap: { name: 'settings' } },
      { name: 'p', projected: { sources: [{ secret: { name: 'projected' } }, { configMap: { name: 'root-ca' } }] } },
    ],
    containers: [{ name: 'x', env: [{ name: 'E', valueFrom: { secretKeyRef: { name: 'env', key: 'k' } } }] }],
  },
  'a/two': { nodeName: 'node-2', volumes: [{ name: 'only-a-name', secret: { secretName: 'elsewhere' } }] },
};
const store = {
  list: (_: string, { prefix = '' } = {}) => ({
    entries: Object.entries(pods)
      .filter(([id]) => id.startsWith(prefix))
      .map(([, spec]) => ({ bytes: Buffer.from(JSON.stringify({ spec })) }) as Entry),
  }),
} as unknown as Store;

const NODE = { name: 'system:node:node-1', groups: ['system:nodes'] };
const authorizer = withNodeReads(generous, store);
const ask = (verb: string, resource: string, name: string, { user = NODE, namespace = 'a' } = {}) =>
  authorizer.authorize(user, { verb, group: '', version: 'v1', resource, subresource: '', namespace, name }).allowed;

const allowed: Record<string, boolean> = {
  'a Secret of a volume': ask('get', 'secrets', 'disk-keys'),
  'a ConfigMap of a volume': ask('get', 'configmaps', 'settings'),
  'a Secret of a projected volume': ask('get', 'secrets', 'projected'),
  'a ConfigMap of a projected volume': ask('get', 'configmaps', 'root-ca'),
  'a Secret of the environment': ask('get', 'secrets', 'env'),
  'what is neither': ask('list', 'pods', ''),
  'what somebody else reads': ask('list', 'secrets', '', { user: { name: 'alice', groups: [] } }),
};
for (const [name, found] of Object.entries(allowed)) test(`a node reads ${name}`, () => assert.equal(found, true));

const refused: Record<string, boolean> = {
  'a Secret of another node': ask('get', 'secrets', 'elsewhere'),
  'a ConfigMap that is named as a Secret': ask('get', 'configmaps', 'disk-keys'),
  'one of another namespace': ask('get', 'secrets', 'disk-keys', { namespace: 'b' }),
  'the name of a volume': ask('get', 'secrets', 'only-a-name'),
  'all of them': ask('list', 'secrets', ''),
  'any, where its name does not say which it is': ask('get', 'secrets', 'disk-keys', {
    user: { name: 'somebody', groups: ['system:nodes'] },
  }),
};
for (const [name, found] of Object.entries(refused))
  test(`a node does not read ${name}`, () => assert.equal(found, false));
