import assert from 'node:assert/strict';
import { test } from 'node:test';
import { resourcesOfAggregated, resourcesOfPlain } from '#engine/aggregation/parse-discovery.ts';

const NO_KIND = { group: '', version: '', kind: '' };

test('subresources are listed under their resource, even if the resource itself is not served', () => {
  const found = resourcesOfPlain({
    kind: 'APIResourceList',
    resources: [
      { name: 'vms/console', namespaced: true, kind: 'VM', verbs: ['get'] },
      { name: 'boxes/scale', namespaced: false, group: 'autoscaling', version: 'v1', kind: 'Scale', verbs: ['get'] },
      { name: 'boxes', namespaced: false, kind: 'Box', singularName: 'box', verbs: ['list'], categories: ['all'] },
    ],
  });
  const scale = { group: 'autoscaling', version: 'v1', kind: 'Scale' };
  assert.deepEqual(found, [
    {
      resource: 'boxes',
      responseKind: { ...NO_KIND, kind: 'Box' },
      scope: 'Cluster',
      singularResource: 'box',
      verbs: ['list'],
      categories: ['all'],
      subresources: [{ subresource: 'scale', responseKind: scale, verbs: ['get'] }],
    },
    {
      resource: 'vms',
      responseKind: NO_KIND,
      scope: 'Namespaced',
      singularResource: '',
      verbs: [],
      subresources: [{ subresource: 'console', responseKind: { ...NO_KIND, kind: 'VM' }, verbs: ['get'] }],
    },
  ]);
});

const nonsense: Record<string, unknown> = {
  'a text': 'no',
  'another kind': { kind: 'Status' },
  nothing: null,
};
for (const [name, document] of Object.entries(nonsense)) {
  test(`${name} is rejected`, () => {
    assert.throws(() => resourcesOfPlain(document), /the response is not an APIResourceList/);
  });
}

test('invalid resources are omitted', () => {
  const resources = [7, null, { resource: '' }, { resource: 'ok', verbs: ['get', 5], responseKind: 'x', scope: {} }];
  const document = { items: [3, { metadata: { name: 'g' }, versions: [null, { version: 'v1', resources }] }] };
  assert.deepEqual(resourcesOfAggregated(document, 'g', 'v1'), [
    { resource: 'ok', responseKind: NO_KIND, scope: 'Cluster', singularResource: '', verbs: ['get'] },
  ]);
  assert.equal(resourcesOfAggregated(document, 'g', 'v2'), undefined);
  assert.equal(resourcesOfAggregated('no', 'g', 'v1'), undefined);
});
