import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compareApiVersions, groupsOf } from '#engine/discovery/group-order.ts';
import { aResource, everything } from '#engine/discovery/testing/sample-resource.ts';

const versions: Record<string, { given: string[]; want: string[] }> = {
  'prefers stable over beta over alpha, regardless of numbers': {
    given: ['v1alpha1', 'v3beta1', 'v1'],
    want: ['v1', 'v3beta1', 'v1alpha1'],
  },
  'compares numbers, not text': { given: ['v2', 'v10', 'v1'], want: ['v10', 'v2', 'v1'] },
  'compares the second number last': {
    given: ['v1beta1', 'v2beta1', 'v1beta10'],
    want: ['v2beta1', 'v1beta10', 'v1beta1'],
  },
  'puts other names last, alphabetically': {
    given: ['foo10', 'v1alpha1', 'foo1'],
    want: ['v1alpha1', 'foo1', 'foo10'],
  },
};
for (const [name, { given, want }] of Object.entries(versions)) {
  test(`version order: ${name}`, () => assert.deepEqual([...given].sort(compareApiVersions), want));
}

test('built-in groups come first in the order of kube-apiserver, then custom groups by name', () => {
  const zoo = aResource({ group: 'a.zoo', kind: 'Animal', plural: 'animals', builtIn: false });
  const unranked = aResource({ group: 'zz.k8s.io', kind: 'Thing', plural: 'things' });
  const names = groupsOf([zoo, unranked, ...everything]).map((group) => group.name);
  const want = ['', 'authorization.k8s.io', 'apiextensions.k8s.io', 'zz.k8s.io', 'a.zoo', 'golden.local'];
  assert.deepEqual(names, want);
});

test('sorting resources does not modify the given array', () => {
  const given = Object.freeze([...everything]);
  const core = groupsOf(given)[0]!;
  assert.deepEqual(
    core.versions[0]!.resources.map((resource) => resource.plural),
    ['namespaces', 'pods'],
  );
});
