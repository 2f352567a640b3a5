import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  anything,
  bool,
  bytes,
  embedded,
  type Infer,
  int32,
  int64,
  intOrString,
  list,
  map,
  microTime,
  noted,
  num,
  obj,
  oneOf,
  quantity,
  str,
  time,
} from '#kube/schema-dsl.ts';
import type { Schema } from '#kube/schema.ts';

const cases: Record<string, { schema: Schema; want: Schema }> = {
  'a plain string has nothing but its type': { schema: str(), want: { type: 'string' } },
  'limits and notes of a string': {
    schema: str({ minLength: 1, maxLength: 3, pattern: '^a', default: 'a', description: 'A.', nullable: true }),
    want: {
      type: 'string',
      minLength: 1,
      maxLength: 3,
      pattern: '^a',
      description: 'A.',
      default: 'a',
      nullable: true,
    },
  },
  'false and 0 are defaults too': {
    schema: obj({ a: bool({ default: false }), b: int32({ default: 0 }) }),
    want: {
      type: 'object',
      properties: { a: { type: 'boolean', default: false }, b: { type: 'integer', format: 'int32', default: 0 } },
    },
  },
  'numbers carry their Go type': {
    schema: int64({ minimum: 1 }),
    want: { type: 'integer', format: 'int64', minimum: 1 },
  },
  'a fraction': { schema: num({ maximum: 2 }), want: { type: 'number', format: 'double', maximum: 2 } },
  'times of both precisions look alike': { schema: microTime(), want: time() },
  'bytes are base64': { schema: bytes(), want: { type: 'string', format: 'byte' } },
  words: { schema: oneOf(['A', 'B']), want: { type: 'string', enum: ['A', 'B'] } },
  'a port or its name': { schema: intOrString(), want: { 'x-kubernetes-int-or-string': true } },
  'a quantity may be a number with a fraction': {
    schema: quantity(),
    want: { oneOf: [{ type: 'string' }, { type: 'number' }] },
  },
  'an atomic list': {
    schema: list(str(), { atomic: true }),
    want: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'atomic' },
  },
  'a set that patches merge': {
    schema: list(str(), { set: true, merge: true }),
    want: {
      type: 'array',
      items: { type: 'string' },
      'x-kubernetes-list-type': 'set',
      'x-kubernetes-patch-strategy': 'merge',
    },
  },
  'a merge key is the apply key too': {
    schema: list(obj({ name: str() }), { mergeKey: 'name', retainKeys: true }),
    want: {
      type: 'array',
      items: { type: 'object', properties: { name: { type: 'string' } } },
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
      'x-kubernetes-patch-strategy': 'merge,retainKeys',
      'x-kubernetes-patch-merge-key': 'name',
    },
  },
  'apply keys may differ from the merge key': {
    schema: list(obj({}), { mergeKey: 'port', mapKeys: ['port', 'protocol'] }),
    want: {
      type: 'array',
      items: { type: 'object', properties: {} },
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['port', 'protocol'],
      'x-kubernetes-patch-strategy': 'merge',
      'x-kubernetes-patch-merge-key': 'port',
    },
  },
  'no apply key at all': {
    schema: list(obj({}), { atomic: true, mergeKey: 'type', mapKeys: [] }),
    want: {
      type: 'array',
      items: { type: 'object', properties: {} },
      'x-kubernetes-list-type': 'atomic',
      'x-kubernetes-patch-strategy': 'merge',
      'x-kubernetes-patch-merge-key': 'type',
    },
  },
  'an atomic map': {
    schema: map(str(), { atomic: true }),
    want: { type: 'object', additionalProperties: { type: 'string' }, 'x-kubernetes-map-type': 'atomic' },
  },
  'an open object with required fields': {
    schema: obj({ a: str() }, { required: ['a'], open: true, retainKeys: true }),
    want: {
      type: 'object',
      properties: { a: { type: 'string' } },
      required: ['a'],
      'x-kubernetes-patch-strategy': 'retainKeys',
      'x-kubernetes-preserve-unknown-fields': true,
    },
  },
  'any value': { schema: anything(), want: { 'x-kubernetes-preserve-unknown-fields': true } },
  'any object': {
    schema: embedded(),
    want: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, 'x-kubernetes-embedded-resource': true },
  },
};

for (const [name, { schema, want }] of Object.entries(cases)) {
  test(`schema: ${name}`, () => assert.deepEqual(schema, want));
}

test('noted leaves the shared piece as it is', () => {
  const piece = obj({ a: str() });
  assert.deepEqual(noted(piece, { default: {} }).default, {});
  assert.equal('default' in piece, false);
});

/** Checked by the compiler: a wrong inference does not compile. */
test('types are inferred, required fields without undefined', () => {
  const part = obj({ mode: oneOf(['On', 'Off']), count: int32(), tags: map(list(str())) }, { required: ['count'] });
  type Part = Infer<typeof part>;
  const whole: Part = { count: 1, mode: 'On', tags: { a: ['b'] } };
  const count: number = whole.count;
  // @ts-expect-error: count is required
  const missing: Part = { mode: 'Off' };
  // @ts-expect-error: not one of the words
  const wrong: Part['mode'] = 'Half';
  // @ts-expect-error: mode may be absent
  const mode: string = whole.mode;
  assert.deepEqual([count, missing.mode, wrong, mode], [1, 'Off', 'Half', 'On']);
});
