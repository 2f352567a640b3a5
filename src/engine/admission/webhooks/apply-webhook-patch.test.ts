import assert from 'node:assert/strict';
import { test } from 'node:test';
import { anAdmission, anObject } from '#engine/admission/matching/testing/attributes.ts';
import { applyWebhookPatch } from '#engine/admission/webhooks/apply-webhook-patch.ts';
import { configMaps } from '#engine/registry/kinds/core/config-map.ts';
import { badRequest, isApiError } from '#kube/api-error.ts';
import type { KubeObject } from '#kube/meta.ts';

const apply = (operations: unknown, overrides: Parameters<typeof anAdmission>[0] = {}) => {
  const attributes = anAdmission(overrides);
  const text = typeof operations === 'string' ? operations : JSON.stringify(operations);
  const changed = applyWebhookPatch('x.y.z', text, attributes, attributes.resource);
  return { changed, object: attributes.object };
};

test('a patch changes the object in place', () => {
  const object = anObject(configMaps);
  const { changed } = apply([{ op: 'add', path: '/data', value: { a: '1' } }], { object });
  assert.equal(changed, true);
  assert.deepEqual(object['data'], { a: '1' });
});

const without: Record<string, unknown> = {
  'no patch': '',
  'an empty patch': [],
  'a patch that only tests': [{ op: 'test', path: '/metadata/name', value: 'thing' }],
  'a patch that sets existing values': [{ op: 'replace', path: '/metadata/name', value: 'thing' }],
};
for (const [name, operations] of Object.entries(without)) {
  test(`${name} changes nothing`, () => assert.equal(apply(operations).changed, false));
}

test('a field that reshaping removes is not a change', () => {
  const reshape = (object: KubeObject) => void delete object['unknown'];
  assert.equal(apply([{ op: 'add', path: '/unknown', value: 1 }], { reshape }).changed, false);
});

test('a patch may set a name that is not generated yet', () => {
  const object = { ...anObject(configMaps), metadata: { generateName: 'x-' } };
  const { changed } = apply([{ op: 'add', path: '/metadata/name', value: 'x-1' }], { object });
  assert.equal(changed, true);
});

test('an object that the webhook sees in another version keeps its own', () => {
  const attributes = anAdmission();
  const other = { ...configMaps, version: 'v2' };
  const operations = [
    { op: 'test', path: '/apiVersion', value: 'v2' },
    { op: 'add', path: '/data', value: {} },
  ];
  assert.equal(applyWebhookPatch('x.y.z', JSON.stringify(operations), attributes, other), true);
  assert.equal(attributes.object?.apiVersion, 'v1');
});

const HOOK = 'Internal error occurred: admission webhook "x.y.z"';
const refused: Record<string, { operations: unknown; overrides?: Parameters<typeof anAdmission>[0]; want: string }> = {
  'invalid JSON': { operations: '[{', want: 'Internal error occurred: ' },
  'not a list': { operations: { op: 'add' }, want: 'Internal error occurred: error decoding patch' },
  'an operation that does not exist': {
    operations: [{ op: 'explode', path: '/data' }],
    want: 'Internal error occurred: Unexpected kind: explode',
  },
  'a path that does not exist': {
    operations: [{ op: 'remove', path: '/data/a/b' }],
    want: 'Internal error occurred: remove operation does not apply: doc is missing path: "/data/a/b": missing value',
  },
  'a test that fails': {
    operations: [{ op: 'test', path: '/metadata/name', value: 'other' }],
    want: 'Internal error occurred: testing value /metadata/name failed: test failed',
  },
  'more operations than allowed': {
    operations: Array.from({ length: 10_001 }, () => ({ op: 'test', path: '/metadata/name', value: 'thing' })),
    want: 'Internal error occurred: The allowed maximum operations in a JSON patch is 10000, got 10001',
  },
  'another name': {
    operations: [{ op: 'replace', path: '/metadata/name', value: 'other' }],
    want: `${HOOK} attempted to change metadata.name, which is not supported`,
  },
  'another namespace': {
    operations: [{ op: 'remove', path: '/metadata/namespace' }],
    want: `${HOOK} attempted to change metadata.namespace, which is not supported`,
  },
  'another kind': {
    operations: [{ op: 'replace', path: '/kind', value: 'Secret' }],
    want: `${HOOK} attempted to change kind, which is not supported`,
  },
  'a list instead of metadata': {
    operations: [{ op: 'replace', path: '/metadata', value: [] }],
    want: `${HOOK} replaced metadata by something other than an object`,
  },
  'nothing left': {
    operations: [{ op: 'replace', path: '', value: null }],
    want: 'Internal error occurred: ',
  },
  'a patch of a delete': {
    operations: [{ op: 'add', path: '/data', value: {} }],
    overrides: { operation: 'DELETE' },
    want: `${HOOK} attempted to modify the object, which is not supported for this operation`,
  },
  'an object that is not of the kind': {
    operations: [{ op: 'add', path: '/data', value: 7 }],
    overrides: {
      reshape: () => {
        throw badRequest('data must be a map');
      },
    },
    want: 'Internal error occurred: data must be a map',
  },
};
for (const [name, { operations, overrides, want }] of Object.entries(refused)) {
  test(`a patch is refused: ${name}`, () => {
    assert.throws(
      () => apply(operations, overrides),
      (error) => isApiError(error, 'InternalError') && error.code === 500 && error.message.startsWith(want),
    );
  });
}

test('__proto__ in a patch is inert', () => {
  for (const path of ['/__proto__/polluted', '/metadata/__proto__/polluted']) {
    assert.throws(
      () => apply([{ op: 'add', path, value: 'yes' }]),
      (error) => isApiError(error, 'InternalError'),
    );
  }
  const { object } = apply('[{"op":"add","path":"/data","value":{"__proto__":{"polluted":"yes"}}}]');
  assert.equal(Object.getPrototypeOf(object?.['data']), Object.prototype);
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
});
