import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withNodeReads } from '#engine/auth/node-reads.ts';
import type { RbacAuthorizer } from '#engine/auth/rbac/rbac-authorizer.ts';
import type { Entry, Store } from '#engine/store/store.ts';

/** Allows everything, so that any refusal comes from the node authorizer. */
const allowAll = { authorize: () => ({ allowed: true }) } as unknown as RbacAuthorizer;

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
const authorizer = withNodeReads(allowAll, store);
const isAllowed = (verb: string, resource: string, name: string, { user = NODE, namespace = 'a' } = {}) =>
  authorizer.authorize(user, { verb, group: '', version: 'v1', resource, subresource: '', namespace, name }).allowed;

const allowed: Record<string, boolean> = {
  'a Secret of a volume': isAllowed('get', 'secrets', 'disk-keys'),
  'a ConfigMap of a volume': isAllowed('get', 'configmaps', 'settings'),
  'a Secret of a projected volume': isAllowed('get', 'secrets', 'projected'),
  'a ConfigMap of a projected volume': isAllowed('get', 'configmaps', 'root-ca'),
  'a Secret of the environment': isAllowed('get', 'secrets', 'env'),
  'other resources': isAllowed('list', 'pods', ''),
  'as another user': isAllowed('list', 'secrets', '', { user: { name: 'alice', groups: [] } }),
};
for (const [name, found] of Object.entries(allowed)) test(`a node reads ${name}`, () => assert.equal(found, true));

const refused: Record<string, boolean> = {
  'a Secret of another node': isAllowed('get', 'secrets', 'elsewhere'),
  'a ConfigMap with the name of a Secret': isAllowed('get', 'configmaps', 'disk-keys'),
  'a Secret of another namespace': isAllowed('get', 'secrets', 'disk-keys', { namespace: 'b' }),
  'a Secret with the name of a volume': isAllowed('get', 'secrets', 'only-a-name'),
  'a list of Secrets': isAllowed('list', 'secrets', ''),
  'a Secret, if its user name is not that of a node': isAllowed('get', 'secrets', 'disk-keys', {
    user: { name: 'somebody', groups: ['system:nodes'] },
  }),
};
for (const [name, found] of Object.entries(refused))
  test(`a node does not read ${name}`, () => assert.equal(found, false));
