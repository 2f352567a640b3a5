import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  anything,
  bool,
  bytes,
  type Infer,
  int32,
  int64,
  intOrString,
  list,
  map,
  microTime,
  overrideOptions,
  num,
  obj,
  oneOf,
  quantity,
  str,
  time,
} from '#kube/schema-dsl.ts';
import type { Schema } from '#kube/schema.ts';

const cases: Record<string, { schema: Schema; want: Schema }> = {
  'a plain string has only its type': { schema: str(), want: { type: 'string' } },
  'a string has its limits and options': {
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
  'false and 0 are defaults': {
    schema: obj({ a: bool({ default: false }), b: int32({ default: 0 }) }),
    want: {
      type: 'object',
      properties: { a: { type: 'boolean', default: false }, b: { type: 'integer', format: 'int32', default: 0 } },
    },
  },
  'integers have the format of their Go type': {
    schema: int64({ minimum: 1 }),
    want: { type: 'integer', format: 'int64', minimum: 1 },
  },
  'a fraction is a double': { schema: num({ maximum: 2 }), want: { type: 'number', format: 'double', maximum: 2 } },
  'times of both precisions have the same format': { schema: microTime(), want: time() },
  'bytes are base64': { schema: bytes(), want: { type: 'string', format: 'byte' } },
  'a choice is an enum': { schema: oneOf(['A', 'B']), want: { type: 'string', enum: ['A', 'B'] } },
  'a port or its name is int-or-string': { schema: intOrString(), want: { 'x-kubernetes-int-or-string': true } },
  'a quantity may be a number with a fraction': {
    schema: quantity(),
    want: { oneOf: [{ type: 'string' }, { type: 'number' }] },
  },
  'a list can be atomic': {
    schema: list(str(), { atomic: true }),
    want: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'atomic' },
  },
  'a list of scalars can be a set that patches merge': {
    schema: list(str(), { set: true, merge: true }),
    want: {
      type: 'array',
      items: { type: 'string' },
      'x-kubernetes-list-type': 'set',
      'x-kubernetes-patch-strategy': 'merge',
    },
  },
  'the merge key is also the map key of apply': {
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
  'the map keys of apply can differ from the merge key': {
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
  'a list with a merge key can have no map key': {
    schema: list(obj({}), { atomic: true, mergeKey: 'type', mapKeys: [] }),
    want: {
      type: 'array',
      items: { type: 'object', properties: {} },
      'x-kubernetes-list-type': 'atomic',
      'x-kubernetes-patch-strategy': 'merge',
      'x-kubernetes-patch-merge-key': 'type',
    },
  },
  'a map can be atomic': {
    schema: map(str(), { atomic: true }),
    want: { type: 'object', additionalProperties: { type: 'string' }, 'x-kubernetes-map-type': 'atomic' },
  },
  'an object can keep unknown fields and have required ones': {
    schema: obj({ a: str() }, { required: ['a'], open: true, retainKeys: true }),
    want: {
      type: 'object',
      properties: { a: { type: 'string' } },
      required: ['a'],
      'x-kubernetes-patch-strategy': 'retainKeys',
      'x-kubernetes-preserve-unknown-fields': true,
    },
  },
  'anything accepts any value': { schema: anything(), want: { 'x-kubernetes-preserve-unknown-fields': true } },
};

for (const [name, { schema, want }] of Object.entries(cases)) {
  test(`schema: ${name}`, () => assert.deepEqual(schema, want));
}

test('overriding options does not change the shared schema', () => {
  const shared = obj({ a: str() });
  assert.deepEqual(overrideOptions(shared, { default: {} }).default, {});
  assert.equal('default' in shared, false);
});

/** A wrong inference does not compile. */
test('infers types, with required fields that cannot be undefined', () => {
  const part = obj({ mode: oneOf(['On', 'Off']), count: int32(), tags: map(list(str())) }, { required: ['count'] });
  type Part = Infer<typeof part>;
  const whole: Part = { count: 1, mode: 'On', tags: { a: ['b'] } };
  const count: number = whole.count;
  // @ts-expect-error: count is required
  const missing: Part = { mode: 'Off' };
  // @ts-expect-error: not one of the values
  const wrong: Part['mode'] = 'Half';
  // @ts-expect-error: mode may be absent
  const mode: string = whole.mode;
  assert.deepEqual([count, missing.mode, wrong, mode], [1, 'Off', 'Half', 'On']);
});
