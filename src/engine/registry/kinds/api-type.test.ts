import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  apiType,
  apiTypeOf,
  asTypeOf,
  inlined,
  jsonOnly,
  optional,
  pointer,
  required,
} from '#engine/registry/kinds/api-type.ts';
import { type Infer, int32, obj, overrideOptions, str } from '#kube/schema-dsl.ts';

const handler = { exec: pointer(1, str(), 'Command.'), grpc: pointer(4, int32(), 'Port.') };

const probe = apiType(
  'core.v1.Probe',
  { description: 'A probe.', atomic: true },
  {
    period: required(2, int32({ default: 10 }), 'Seconds between probes.'),
    ...inlined(1, 'core.v1.ProbeHandler', handler),
    kind: jsonOnly(str(), 'Kind.'),
  },
);

test('a type is a schema with its fields by name', () => {
  assert.deepEqual(Object.keys(probe.properties), ['exec', 'grpc', 'kind', 'period']);
  assert.deepEqual(probe, {
    type: 'object',
    properties: {
      exec: { type: 'string', description: 'Command.' },
      grpc: { type: 'integer', format: 'int32', description: 'Port.' },
      kind: { type: 'string', description: 'Kind.' },
      period: { type: 'integer', format: 'int32', default: 10, description: 'Seconds between probes.' },
    },
    required: ['period'],
    'x-kubernetes-map-type': 'atomic',
  });
});

test('TypeScript infers required and optional fields', () => {
  const value: Infer<typeof probe> = { period: 1 };
  const whole: Infer<typeof probe> = { period: 1, exec: 'true', grpc: 80 };
  // @ts-expect-error period is required
  const missing: Infer<typeof probe> = { exec: 'true' };
  assert.ok(value.exec === undefined && whole.grpc === 80 && missing.exec === 'true');
});

test('required fields are in the order of the type', () => {
  const type = apiType('core.v1.Taint', 'A taint.', { key: required(1, str(), ''), effect: required(3, str(), '') });
  assert.deepEqual(type.required, ['key', 'effect']);
});

test('a copy with other options has the same type, a schema that only looks alike has none', () => {
  assert.equal(apiTypeOf(overrideOptions(probe, { default: {} })), apiTypeOf(probe));
  assert.equal(apiTypeOf(probe)?.name, 'core.v1.Probe');
  assert.equal(apiTypeOf(obj({ period: int32() })), undefined);
});

test('a lenient schema can have the type of a strict one', () => {
  const lenient = asTypeOf(probe, obj({ period: int32() }, { open: true }));
  assert.equal(apiTypeOf(lenient), apiTypeOf(probe));
});

test('fields keep the order of the type, with the message that they are inlined from', () => {
  const { fields } = apiTypeOf(probe)!;
  assert.deepEqual(
    Object.entries(fields).map(([name, field]) => [
      name,
      field.number,
      field.inlined?.number,
      field.inlined?.type.name,
    ]),
    [
      ['period', 2, undefined, undefined],
      ['exec', 1, 1, 'core.v1.ProbeHandler'],
      ['grpc', 4, 1, 'core.v1.ProbeHandler'],
      ['kind', undefined, undefined, undefined],
    ],
  );
});

interface GoCase {
  readonly field: { readonly isRequired: boolean; readonly omitEmpty: boolean; readonly pointer: boolean };
  readonly want: readonly [isRequired: boolean, omitEmpty: boolean, pointer: boolean];
}
const goCases: Record<string, GoCase> = {
  'a required field is always written': { field: required(1, str(), ''), want: [true, false, false] },
  'an optional field is omitted if it is empty': { field: optional(1, str(), ''), want: [false, true, false] },
  'a pointer is omitted if it is nil': { field: pointer(1, str(), ''), want: [false, true, true] },
  'a required pointer': { field: required(1, str(), '', { pointer: true }), want: [true, false, true] },
  'an optional field without omitempty': {
    field: optional(1, str(), '', { omitEmpty: false }),
    want: [false, false, false],
  },
};
for (const [sentence, { field, want }] of Object.entries(goCases)) {
  test(sentence, () => assert.deepEqual([field.isRequired, field.omitEmpty, field.pointer], want));
}
