import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Schema } from '#kube/schema.ts';
import { formatType } from '#cel/check/format-type.ts';
import { kindType, ruleType, schemaType } from '#cel/check/schema-type.ts';
import type { CelType } from '#cel/type.ts';

/** Returns the type at a path of fields, or `undefined field`. */
function at(type: CelType, path: string): string {
  let here: CelType | undefined = type;
  for (const field of path === '' ? [] : path.split(' ')) {
    assert.equal(here.kind, 'object', `${field} of ${formatType(here)}`);
    here = here.kind === 'object' ? here.field(field) : undefined;
    if (here === undefined) return 'undefined field';
  }
  return formatType(here);
}

const string: Schema = { type: 'string' };

const schemas: Record<string, { schema: Schema; path?: string; want: string }> = {
  'a string': { schema: string, want: 'string' },
  'an integer': { schema: { type: 'integer', format: 'int32' }, want: 'int' },
  'a number': { schema: { type: 'number' }, want: 'double' },
  'a boolean': { schema: { type: 'boolean' }, want: 'bool' },
  'a date-time is a timestamp': { schema: { type: 'string', format: 'date-time' }, want: 'timestamp' },
  'a date is a timestamp': { schema: { type: 'string', format: 'date' }, want: 'timestamp' },
  'a duration': { schema: { type: 'string', format: 'duration' }, want: 'duration' },
  'the byte format is bytes': { schema: { type: 'string', format: 'byte' }, want: 'bytes' },
  'an unknown format is a string': { schema: { type: 'string', format: 'uuid' }, want: 'string' },
  'null is not part of the type': { schema: { type: 'string', nullable: true }, want: 'string' },
  'int-or-string is dyn': { schema: { 'x-kubernetes-int-or-string': true }, want: 'dyn' },
  'int-or-string by its format is dyn': { schema: { type: 'string', format: 'int-or-string' }, want: 'dyn' },
  'an array': { schema: { type: 'array', items: { type: 'array', items: string } }, want: 'list(list(string))' },
  'additionalProperties is a map': {
    schema: { type: 'object', additionalProperties: { type: 'integer' } },
    want: 'map(string, int)',
  },
  'an object type has the given name': { schema: { type: 'object', properties: { a: string } }, want: 'Root' },
  'a field': { schema: { type: 'object', properties: { a: string } }, path: 'a', want: 'string' },
  'an undefined field': {
    schema: { type: 'object', properties: { a: string } },
    path: 'b',
    want: 'undefined field',
  },
  'a field that JavaScript objects inherit': {
    schema: { type: 'object', properties: { a: string } },
    path: 'toString',
    want: 'undefined field',
  },
  'nested types are named by their path': {
    schema: {
      type: 'object',
      properties: {
        list: { type: 'array', items: { type: 'object', properties: { map: { type: 'object' } } } },
      },
    },
    path: 'list',
    want: 'list(Root.list.@idx)',
  },
  'a map of objects': {
    schema: {
      type: 'object',
      properties: { m: { type: 'object', additionalProperties: { type: 'object', properties: {} } } },
    },
    path: 'm',
    want: 'map(string, Root.m.@elem)',
  },
  'an escaped name': {
    schema: { type: 'object', properties: { 'x-y': string } },
    path: 'x__dash__y',
    want: 'string',
  },
  'a reserved word, escaped': {
    schema: { type: 'object', properties: { namespace: { type: 'integer' } } },
    path: '__namespace__',
    want: 'int',
  },
  'an unescaped reserved word': {
    schema: { type: 'object', properties: { namespace: { type: 'integer' } } },
    path: 'namespace',
    want: 'int',
  },
  'an unescaped name that needs escaping is not found': {
    schema: { type: 'object', properties: { a__b: string } },
    path: 'a__b',
    want: 'undefined field',
  },
  'preserved unknown fields are dyn': {
    schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    want: 'dyn',
  },
  'unknown fields of an object with properties are dyn': {
    schema: { type: 'object', properties: { a: string }, 'x-kubernetes-preserve-unknown-fields': true },
    path: 'b',
    want: 'dyn',
  },
  'declared fields keep their type if unknown fields are preserved': {
    schema: { type: 'object', properties: { a: string }, 'x-kubernetes-preserve-unknown-fields': true },
    path: 'a',
    want: 'string',
  },
  'a field without a type is undefined': {
    schema: { type: 'object', properties: { a: {} } },
    path: 'a',
    want: 'undefined field',
  },
  'a list whose items have no type is undefined': {
    schema: { type: 'object', properties: { a: { type: 'array', items: {} } } },
    path: 'a',
    want: 'undefined field',
  },
  'an embedded resource has a kind': {
    schema: { type: 'object', properties: { template: { type: 'object', 'x-kubernetes-embedded-resource': true } } },
    path: 'template metadata name',
    want: 'string',
  },
};

for (const [sentence, { schema, path = '', want }] of Object.entries(schemas)) {
  test(`schema types: ${sentence}`, () => {
    assert.equal(at(schemaType(schema, 'Root'), path), want);
  });
}

test('a recursive schema is converted on demand', () => {
  const node: Schema = { type: 'object', properties: { value: string } };
  node.properties!['next'] = node;
  node.properties!['all'] = { type: 'array', items: node };
  const endless: Schema = { type: 'array' };
  endless.items = endless;
  node.properties!['endless'] = endless;

  assert.equal(at(schemaType(node, 'Node'), 'next next next value'), 'string');
  assert.equal(at(schemaType(node, 'Node'), 'next all'), 'list(Node.next.all.@idx)');
  assert.match(at(schemaType(node, 'Node'), 'endless'), /^(list\()+dyn\)+$/);
});

test('the type of a kind has metadata and the fields of its schema', () => {
  const type = kindType(
    { type: 'object', properties: { spec: { type: 'object', properties: { replicas: { type: 'integer' } } } } },
    'Deployment',
  );
  const wants: Record<string, string> = {
    apiVersion: 'string',
    kind: 'string',
    'spec replicas': 'int',
    'metadata name': 'string',
    'metadata namespace': 'string',
    'metadata labels': 'map(string, string)',
    'metadata annotations': 'map(string, string)',
    'metadata finalizers': 'list(string)',
    'metadata creationTimestamp': 'timestamp',
    'metadata generation': 'int',
    'metadata ownerReferences': 'list(Deployment.metadata.ownerReferences.@idx)',
    'metadata other': 'undefined field',
  };
  for (const [path, want] of Object.entries(wants)) assert.equal(at(type, path), want, path);
});

test('rules of a resource see its names and no other metadata', () => {
  const schema: Schema = { type: 'object', properties: { metadata: { type: 'object' } } };
  assert.equal(at(ruleType(schema, 'self', true)!, 'metadata generateName'), 'string');
  assert.equal(at(ruleType(schema, 'self', true)!, 'metadata labels'), 'undefined field');
});

test('rules of a resource see the metadata that its schema declares', () => {
  const metadata: Schema = { type: 'object', properties: { name: string, generateName: string, uid: string } };
  assert.equal(at(ruleType({ type: 'object', properties: { metadata } }, 'self', true)!, 'metadata uid'), 'string');
});
