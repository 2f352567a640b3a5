import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compileSchema } from '#engine/registry/structural/compile.ts';
import type { Schema } from '#kube/schema.ts';

interface Case {
  schema: Schema;
  object: Record<string, unknown>;
  want: Record<string, unknown>;
  unknown: string[];
}

const text: Schema = { type: 'string' };

const cases: Record<string, Case> = {
  'keeps fields of the schema': {
    schema: { type: 'object', properties: { spec: { type: 'object', properties: { a: text } } } },
    object: { spec: { a: 'x' } },
    want: { spec: { a: 'x' } },
    unknown: [],
  },
  'removes unknown fields and reports their paths': {
    schema: {
      type: 'object',
      properties: {
        spec: {
          type: 'object',
          properties: { list: { type: 'array', items: { type: 'object', properties: { name: text } } } },
        },
      },
    },
    object: { spec: { foo: 1, list: [{ bar: true, name: 'a' }, { baz: {} }] }, extra: {} },
    want: { spec: { list: [{ name: 'a' }, {}] } },
    unknown: ['spec.foo', 'spec.list[0].bar', 'spec.list[1].baz', 'extra'],
  },
  'keeps apiVersion, kind and metadata at the root': {
    schema: { type: 'object', properties: {} },
    object: { apiVersion: 'v1', kind: 'A', metadata: { anything: { goes: 1 } } },
    want: { apiVersion: 'v1', kind: 'A', metadata: { anything: { goes: 1 } } },
    unknown: [],
  },
  'removes nested kind and metadata': {
    schema: { type: 'object', properties: { spec: { type: 'object', properties: {} } } },
    object: { spec: { kind: 'A', metadata: {} } },
    want: { spec: {} },
    unknown: ['spec.kind', 'spec.metadata'],
  },
  'keeps unknown fields that are preserved, but prunes inside known fields': {
    schema: {
      type: 'object',
      properties: {
        spec: {
          type: 'object',
          'x-kubernetes-preserve-unknown-fields': true,
          properties: { known: { type: 'object', properties: { a: text } } },
        },
      },
    },
    object: { spec: { free: { b: 1 }, known: { a: 'x', b: 1 } } },
    want: { spec: { free: { b: 1 }, known: { a: 'x' } } },
    unknown: ['spec.known.b'],
  },
  'preserves through lists': {
    schema: {
      type: 'object',
      properties: {
        list: {
          type: 'array',
          'x-kubernetes-preserve-unknown-fields': true,
          items: { type: 'object', properties: { known: { type: 'object' } } },
        },
      },
    },
    object: { list: [{ free: 1, known: { a: 1 } }] },
    want: { list: [{ free: 1, known: {} }] },
    unknown: ['list[0].known.a'],
  },
  'keeps the keys of maps and prunes their values': {
    schema: {
      type: 'object',
      properties: { map: { type: 'object', additionalProperties: { type: 'object', properties: { a: text } } } },
    },
    object: { map: { one: { a: 'x', b: 1 }, two: {} } },
    want: { map: { one: { a: 'x' }, two: {} } },
    unknown: ['map.one.b'],
  },
  'empties the objects in a map of anything': {
    schema: { type: 'object', properties: { map: { type: 'object', additionalProperties: true } } },
    object: { map: { one: 1, two: { a: [{ b: 1 }] }, three: [{ c: 1 }] } },
    want: { map: { one: 1, two: {}, three: [{}] } },
    unknown: ['map.two.a', 'map.three[0].c'],
  },
  'keeps the standard metadata of an embedded resource': {
    schema: {
      type: 'object',
      properties: {
        template: {
          type: 'object',
          'x-kubernetes-embedded-resource': true,
          'x-kubernetes-preserve-unknown-fields': true,
        },
      },
    },
    object: { template: { kind: 'A', metadata: { name: 'a', strange: 1, labels: { any: 'x' } }, more: 1 } },
    want: { template: { kind: 'A', metadata: { name: 'a', labels: { any: 'x' } }, more: 1 } },
    unknown: ['template.metadata.strange'],
  },
  'keeps the identity of an embedded resource': {
    schema: {
      type: 'object',
      properties: {
        template: { type: 'object', 'x-kubernetes-embedded-resource': true, properties: { spec: { type: 'object' } } },
      },
    },
    object: { template: { apiVersion: 'v1', kind: 'A', metadata: { name: 'a' }, spec: { b: 1 }, c: 1 } },
    want: { template: { apiVersion: 'v1', kind: 'A', metadata: { name: 'a' }, spec: {} } },
    unknown: ['template.spec.b', 'template.c'],
  },
  'empties an object in place of a scalar': {
    schema: { type: 'object', properties: { size: { type: 'integer' }, port: { 'x-kubernetes-int-or-string': true } } },
    object: { size: { a: 1 }, port: [{ b: 1 }] },
    want: { size: {}, port: [{}] },
    unknown: ['size.a', 'port[0].b'],
  },
  'does not treat inherited names as known': {
    schema: { type: 'object', properties: { spec: { type: 'object', properties: { a: text } } } },
    object: { spec: { constructor: 1, toString: 'x' } },
    want: { spec: {} },
    unknown: ['spec.constructor', 'spec.toString'],
  },
};

describe('prune', () => {
  for (const [name, { schema, object, want, unknown }] of Object.entries(cases)) {
    it(name, () => {
      const paths: string[] = [];
      compileSchema(schema).prune(object, (path) => paths.push(path));
      assert.deepEqual(object, want);
      assert.deepEqual(paths, unknown);
    });
  }

  it('prunes apiVersion, kind and metadata of a part of an object', () => {
    const object = { kind: 'A', a: 'x' };
    compileSchema({ type: 'object', properties: { a: text } }, { root: false }).prune(object);
    assert.deepEqual(object, { a: 'x' });
  });
});
