import assert from 'node:assert/strict';
import { test } from 'node:test';
import { everything, gadgets } from '#engine/discovery/testing/sample-resource.ts';
import { NamedTypes } from '#engine/openapi/named-types.ts';
import { TYPE_META, type DocumentSchema } from '#engine/openapi/shared-schemas.ts';
import { openApiV2 } from '#engine/openapi/v2.ts';
import { kindDefinition, toV2 } from '#engine/openapi/v2-schema.ts';
import type { Schema } from '#kube/schema.ts';

interface Case {
  given: Schema;
  builtIn?: boolean;
  want: DocumentSchema;
}
const text: Schema = { type: 'string' };

const conversions: Record<string, Case> = {
  'keeps type, format and description, drops validations': {
    given: { type: 'string', format: 'date-time', description: 'when', pattern: '^a', maxLength: 3, enum: ['a'] },
    want: { type: 'string', format: 'date-time', description: 'when' },
  },
  'converts int-or-string of a built-in kind to a string with a format': {
    given: { 'x-kubernetes-int-or-string': true },
    builtIn: true,
    want: { type: 'string', format: 'int-or-string' },
  },
  'leaves int-or-string of a custom kind untyped': {
    given: { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
    want: { 'x-kubernetes-int-or-string': true },
  },
  'allows anything if null is allowed': {
    given: { type: 'object', nullable: true, properties: { a: text } },
    want: {},
  },
  'allows anything if unknown fields are preserved': {
    given: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, properties: { a: text } },
    want: { 'x-kubernetes-preserve-unknown-fields': true },
  },
  'drops alternatives': {
    given: { type: 'string', oneOf: [{ minLength: 1 }], allOf: [{ maxLength: 2 }], not: { enum: ['x'] } },
    want: { type: 'string' },
  },
  'allows anything for an array without items': { given: { type: 'array' }, want: {} },
  'converts the items of an array and keeps its merge strategy': {
    given: { type: 'array', items: { type: 'integer', minimum: 1 }, 'x-kubernetes-list-type': 'set' },
    want: { type: 'array', items: { type: 'integer' }, 'x-kubernetes-list-type': 'set' },
  },
  'converts the values of a map': {
    given: { type: 'object', additionalProperties: { type: 'array' } },
    want: { type: 'object', additionalProperties: {} },
  },
  'leaves an object without properties open': { given: { type: 'object', properties: {} }, want: { type: 'object' } },
  'does not require a nullable field': {
    given: {
      type: 'object',
      required: ['a', 'b'],
      properties: { a: text, b: { type: 'string', nullable: true } },
    },
    want: { type: 'object', required: ['a'], properties: { a: { type: 'string' }, b: {} } },
  },
  'adds metadata to an embedded object': {
    given: { type: 'object', 'x-kubernetes-embedded-resource': true, properties: { data: text } },
    want: {
      type: 'object',
      'x-kubernetes-embedded-resource': true,
      required: ['kind', 'apiVersion'],
      properties: {
        data: { type: 'string' },
        ...TYPE_META,
        metadata: { $ref: '#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta' },
      },
    },
  },
};
for (const [name, { given, builtIn = false, want }] of Object.entries(conversions)) {
  test(`schema to v2: ${name}`, () => {
    const got = JSON.parse(JSON.stringify(toV2(given, builtIn))) as DocumentSchema;
    assert.deepEqual(got, want);
  });
}

test('a kind that preserves unknown fields has no named properties', () => {
  const loose = { ...gadgets, schema: { ...gadgets.schema, 'x-kubernetes-preserve-unknown-fields': true } };
  assert.deepEqual(kindDefinition(loose, new NamedTypes()), [
    'local.golden.v1.Gadget',
    {
      type: 'object',
      'x-kubernetes-group-version-kind': [{ group: 'golden.local', version: 'v1', kind: 'Gadget' }],
    },
  ]);
});

test('the document contains every kind and its list, and every reference resolves', () => {
  const document = openApiV2(everything);
  for (const model of ['io.k8s.api.core.v1.Pod', 'local.golden.v1beta1.Gadget', 'local.golden.v1.GadgetList']) {
    assert.ok(document.definitions[model], model);
  }
  const refs = [...JSON.stringify(document).matchAll(/"\$ref":"#\/definitions\/([^"]+)"/g)];
  assert.ok(refs.length > 10);
  for (const [, model] of refs) assert.ok(document.definitions[model!], model);
});

test('the PATCH operation of a kind has dryRun, which kubectl 1.20 checks', () => {
  const patch = openApiV2(everything).paths['/api/v1/namespaces/{namespace}/pods/{name}']!.patch!;
  assert.deepEqual(patch['x-kubernetes-group-version-kind'], { group: '', version: 'v1', kind: 'Pod' });
  assert.ok(patch.parameters!.some((parameter) => parameter.name === 'dryRun' && parameter.in === 'query'));
});
