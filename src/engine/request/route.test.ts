import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseApiRoute, verbOf } from '#engine/request/route.ts';

const resource = (parts: object) => ({
  type: 'resource',
  group: '',
  version: 'v1',
  plural: 'pods',
  namespace: '',
  name: '',
  subresource: '',
  hasMoreSegments: false,
  ...parts,
});

const cases: Record<string, { path: string; want: object }> = {
  'a core collection': { path: '/api/v1/pods', want: resource({}) },
  'a trailing slash': { path: '/api/v1/pods/', want: resource({}) },
  'a collection in a namespace': { path: '/api/v1/namespaces/a/pods', want: resource({ namespace: 'a' }) },
  'an item': { path: '/api/v1/namespaces/a/pods/b', want: resource({ namespace: 'a', name: 'b' }) },
  'a subresource': {
    path: '/api/v1/namespaces/a/pods/b/status',
    want: resource({ namespace: 'a', name: 'b', subresource: 'status' }),
  },
  'the namespaces': { path: '/api/v1/namespaces', want: resource({ plural: 'namespaces' }) },
  'a namespace': { path: '/api/v1/namespaces/a', want: resource({ plural: 'namespaces', name: 'a' }) },
  "a namespace's status": {
    path: '/api/v1/namespaces/a/status',
    want: resource({ plural: 'namespaces', name: 'a', subresource: 'status' }),
  },
  "a namespace's finalize": {
    path: '/api/v1/namespaces/a/finalize',
    want: resource({ plural: 'namespaces', name: 'a', subresource: 'finalize' }),
  },
  'another group': {
    path: '/apis/apps/v1/namespaces/a/controllerrevisions/b',
    want: resource({ group: 'apps', plural: 'controllerrevisions', namespace: 'a', name: 'b' }),
  },
  'a cluster-wide item of another group': {
    path: '/apis/x.io/v2/things/t',
    want: resource({ group: 'x.io', version: 'v2', plural: 'things', name: 't' }),
  },
  'an escaped name': {
    path: '/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode',
    want: resource({ group: 'rbac.authorization.k8s.io', plural: 'clusterroles', name: 'system:node' }),
  },
  'a broken escape': { path: '/api/v1/pods/%zz', want: resource({ name: '%zz' }) },
  'discovery of a version': { path: '/apis/x.io/v1', want: { type: 'path', path: '/apis/x.io/v1' } },
  'discovery of the core version': { path: '/api/v1', want: { type: 'path', path: '/api/v1' } },
  'something else': { path: '/livez', want: { type: 'path', path: '/livez' } },
  'more below a subresource': {
    path: '/api/v1/namespaces/a/pods/b/portforward/22/tcp',
    want: resource({ namespace: 'a', name: 'b', subresource: 'portforward', hasMoreSegments: true }),
  },
};

for (const [name, { path, want }] of Object.entries(cases)) {
  test(`routes ${name}`, () => assert.deepEqual(parseApiRoute(path), want));
}

const verbs: [method: string, name: string, watching: boolean, want: string | undefined][] = [
  ['GET', '', false, 'list'],
  ['GET', 'a', false, 'get'],
  ['GET', '', true, 'watch'],
  ['GET', 'a', true, 'watch'],
  ['POST', '', false, 'create'],
  ['POST', '', true, 'create'],
  ['PUT', 'a', false, 'update'],
  ['PATCH', 'a', false, 'patch'],
  ['DELETE', 'a', false, 'delete'],
  ['DELETE', '', false, 'deletecollection'],
  ['TRACE', '', false, undefined],
];

for (const [method, name, watching, want] of verbs) {
  test(`${method} ${name === '' ? 'of a collection' : 'of an item'}${watching ? ' with watch' : ''} is ${want ?? 'nothing'}`, () => {
    const route = parseApiRoute(`/api/v1/namespaces/n/pods/${name}`);
    assert.ok(route.type === 'resource');
    assert.equal(verbOf(method, route, new URLSearchParams(watching ? 'watch=1' : '')), want);
  });
}
