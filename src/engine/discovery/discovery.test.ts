import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aggregatedDiscovery } from '#engine/discovery/aggregated.ts';
import { apiGroup, apiGroupList, apiVersions } from '#engine/discovery/api-groups.ts';
import { apiResourceList } from '#engine/discovery/api-resources.ts';
import { accessReviews, everything, gadgets } from '#engine/discovery/testing/sample-resource.ts';
import { rootPaths } from '#engine/discovery/discovery-documents.ts';

const CUSTOM_VERBS = ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch'];
const BUILT_IN_VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];
const OBJECT_VERBS = ['get', 'patch', 'update'];

test('/api contains the core version and the server address', () => {
  assert.deepEqual(apiVersions('127.0.0.1:6443'), {
    kind: 'APIVersions',
    versions: ['v1'],
    serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: '127.0.0.1:6443' }],
  });
});

test('/apis lists the named groups with their versions, the preferred one first', () => {
  const { kind, apiVersion, groups } = apiGroupList(everything);
  assert.deepEqual([kind, apiVersion], ['APIGroupList', 'v1']);
  const names = groups.map((group) => group.name);
  assert.deepEqual(names, ['authorization.k8s.io', 'apiextensions.k8s.io', 'golden.local']);
  assert.deepEqual(groups[2], {
    name: 'golden.local',
    versions: [
      { groupVersion: 'golden.local/v1', version: 'v1' },
      { groupVersion: 'golden.local/v1beta1', version: 'v1beta1' },
    ],
    preferredVersion: { groupVersion: 'golden.local/v1', version: 'v1' },
  });
});

test('/apis/<group> exists only for existing groups', () => {
  assert.deepEqual(apiGroup(everything, 'authorization.k8s.io'), {
    kind: 'APIGroup',
    apiVersion: 'v1',
    name: 'authorization.k8s.io',
    versions: [{ groupVersion: 'authorization.k8s.io/v1', version: 'v1' }],
    preferredVersion: { groupVersion: 'authorization.k8s.io/v1', version: 'v1' },
  });
  assert.equal(apiGroup(everything, 'nothing.local'), undefined);
  assert.equal(apiGroup(everything, ''), undefined);
});

test('a custom kind lists status before scale and has the storage version hash of kube-apiserver', () => {
  assert.deepEqual(apiResourceList(everything, 'golden.local', 'v1'), {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: 'golden.local/v1',
    resources: [
      {
        name: 'gadgets',
        singularName: 'gadget',
        namespaced: true,
        kind: 'Gadget',
        verbs: CUSTOM_VERBS,
        shortNames: ['gd'],
        categories: ['all'],
        storageVersionHash: 'nvwM9QKdhS4=',
      },
      { name: 'gadgets/status', singularName: '', namespaced: true, kind: 'Gadget', verbs: OBJECT_VERBS },
      {
        name: 'gadgets/scale',
        singularName: '',
        namespaced: true,
        group: 'autoscaling',
        version: 'v1',
        kind: 'Scale',
        verbs: OBJECT_VERBS,
      },
    ],
  });
});

test('every version of a kind has the hash of the storage version', () => {
  const beta = apiResourceList(everything, 'golden.local', 'v1beta1');
  assert.equal(beta?.resources[0]?.storageVersionHash, 'nvwM9QKdhS4=');
});

test('the core version has no apiVersion, and built-in subresources are sorted by name', () => {
  const core = apiResourceList(everything, '', 'v1')!;
  assert.equal('apiVersion' in core, false);
  assert.equal(core.groupVersion, 'v1');
  const names = core.resources.map((resource) => resource.name);
  assert.deepEqual(names, ['namespaces', 'pods', 'pods/eviction', 'pods/log', 'pods/status']);
  assert.deepEqual(core.resources[2], {
    name: 'pods/eviction',
    singularName: '',
    namespaced: true,
    group: 'policy',
    version: 'v1',
    kind: 'Eviction',
    verbs: ['create'],
  });
  assert.deepEqual(core.resources[1]!.verbs, BUILT_IN_VERBS);
  assert.equal(core.resources[1]!.storageVersionHash, 'xPOwRZ+Yhw8=');
});

test('a kind that is not stored has no storage version hash', () => {
  const list = apiResourceList([accessReviews], 'authorization.k8s.io', 'v1')!;
  assert.deepEqual(list.resources, [
    {
      name: 'selfsubjectaccessreviews',
      singularName: 'selfsubjectaccessreview',
      namespaced: false,
      kind: 'SelfSubjectAccessReview',
      verbs: ['create'],
    },
  ]);
});

test('a version that is not served is not found', () => {
  assert.equal(apiResourceList(everything, 'golden.local', 'v2'), undefined);
});

test('aggregated discovery of /api contains only the core group and omits the group of built-in kinds', () => {
  const { kind, apiVersion, metadata, items } = aggregatedDiscovery(everything, '/api', 'v2');
  assert.deepEqual([kind, apiVersion, metadata], ['APIGroupDiscoveryList', 'apidiscovery.k8s.io/v2', {}]);
  assert.equal(items.length, 1);
  assert.deepEqual(items[0]!.metadata, { creationTimestamp: null });
  const [version] = items[0]!.versions;
  assert.deepEqual([version!.version, version!.freshness], ['v1', 'Current']);
  const podKind = { group: '', version: '', kind: 'Pod' };
  assert.deepEqual(version!.resources[1], {
    resource: 'pods',
    responseKind: podKind,
    scope: 'Namespaced',
    singularResource: 'pod',
    verbs: BUILT_IN_VERBS,
    shortNames: ['po'],
    categories: ['all'],
    subresources: [
      {
        subresource: 'eviction',
        responseKind: { group: 'policy', version: 'v1', kind: 'Eviction' },
        verbs: ['create'],
      },
      { subresource: 'log', responseKind: podKind, verbs: ['get'] },
      { subresource: 'status', responseKind: podKind, verbs: OBJECT_VERBS },
    ],
  });
});

test('aggregated discovery of /apis includes the group of custom kinds', () => {
  const { apiVersion, items } = aggregatedDiscovery([gadgets], '/apis', 'v2beta1');
  assert.equal(apiVersion, 'apidiscovery.k8s.io/v2beta1');
  assert.deepEqual(items, [
    {
      metadata: { name: 'golden.local', creationTimestamp: null },
      versions: [
        {
          version: 'v1',
          resources: [
            {
              resource: 'gadgets',
              responseKind: { group: 'golden.local', version: 'v1', kind: 'Gadget' },
              scope: 'Namespaced',
              singularResource: 'gadget',
              verbs: CUSTOM_VERBS,
              shortNames: ['gd'],
              categories: ['all'],
              subresources: [
                {
                  subresource: 'status',
                  responseKind: { group: 'golden.local', version: 'v1', kind: 'Gadget' },
                  verbs: OBJECT_VERBS,
                },
                {
                  subresource: 'scale',
                  responseKind: { group: 'autoscaling', version: 'v1', kind: 'Scale' },
                  verbs: OBJECT_VERBS,
                },
              ],
            },
          ],
          freshness: 'Current',
        },
      ],
    },
  ]);
});

test('/ lists each group and version once, in order', () => {
  const { paths } = rootPaths(everything);
  assert.deepEqual(paths.slice(0, 4), ['/api', '/api/v1', '/apis', '/apis/']);
  for (const path of ['/apis/golden.local', '/apis/golden.local/v1', '/apis/golden.local/v1beta1', '/openapi/v3']) {
    assert.equal(paths.filter((listed) => listed === path).length, 1, path);
  }
});
