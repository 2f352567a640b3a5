import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mergeRemoteV2, takeRemoteV2 } from '#engine/openapi/remote-v2.ts';
import type { SwaggerDocument } from '#engine/openapi/v2.ts';

const ref = (name: string) => ({ $ref: `#/definitions/${name}` });
const own: SwaggerDocument = {
  swagger: '2.0',
  info: { title: 'own', version: '1' },
  consumes: [],
  produces: [],
  paths: { '/own': {} },
  definitions: { Shared: { type: 'object' }, Mine: { type: 'string' } },
};

function document(definitions: object, path = '/apis/g/v1/boxes') {
  const schema = ref('Box');
  return { paths: { [path]: { get: { operationId: 'x', responses: { 200: { schema } } } } }, definitions };
}

test('takes the definitions that are referenced, including recursive ones', () => {
  const taken = takeRemoteV2(
    document({
      Box: { properties: { next: ref('Box'), lid: { type: 'array', items: ref('Lid') } }, allOf: ['dropped'] },
      Lid: { type: 'object', additionalProperties: ref('Handle') },
      Other: { type: 'object' },
    }),
    '/apis/g/v1',
  );
  assert.deepEqual(Object.keys(taken?.definitions ?? {}), ['Box', 'Lid', 'Handle']);
  assert.deepEqual(Object.keys(taken?.definitions['Box'] ?? {}), ['properties']);
});

const without: Record<string, unknown> = {
  'a document without paths': {},
  'a document with other paths only': document({}, '/apis/g/v10/boxes'),
  'no document': 7,
};
for (const [name, value] of Object.entries(without)) {
  test(`${name} yields nothing`, () => assert.equal(takeRemoteV2(value, '/apis/g/v1'), undefined));
}

test('equal definitions are shared, and different definitions of one name get a suffix in all references', () => {
  const shared = takeRemoteV2(document({ Box: { properties: { a: ref('Shared'), b: ref('Mine') } } }), '/apis/g/v1')!;
  const remote = { ...shared, definitions: { ...shared.definitions, Shared: { type: 'object' as const } } };
  const merged = mergeRemoteV2(own, [remote]);
  assert.deepEqual(Object.keys(merged.definitions), ['Shared', 'Mine', 'Box', 'Mine_v2']);
  assert.equal(merged.definitions['Box']?.properties?.['a']?.$ref, '#/definitions/Shared');
  assert.equal(merged.definitions['Box']?.properties?.['b']?.$ref, '#/definitions/Mine_v2');
  assert.deepEqual(Object.keys(merged.paths), ['/own', '/apis/g/v1/boxes']);
  assert.deepEqual(own.definitions['Mine'], { type: 'string' });
});

test('names that are special in JavaScript are ordinary names', () => {
  const text =
    '{"paths":{"/apis/g/v1/x":{"get":{"responses":{"200":{"schema":{"$ref":"#/definitions/constructor"}}}}}}}';
  const taken = takeRemoteV2(JSON.parse(text), '/apis/g/v1');
  assert.deepEqual(Object.keys(mergeRemoteV2(own, [taken!]).definitions), ['Shared', 'Mine', 'constructor']);
});
