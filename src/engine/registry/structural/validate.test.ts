import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compileSchema } from '#engine/registry/structural/compile.ts';
import type { Schema } from '#kube/schema.ts';

interface Case {
  schema: Schema;
  value: unknown;
  /** `reason field: message`; the field is `spec.x`. */
  want: string[];
}

const invalid = (message: string) => `FieldValueInvalid spec.x: ${message}`;
const wrongType = (message: string) => `FieldValueTypeInvalid spec.x: ${message}`;
const general = (message: string) => `FieldValueInvalid <nil>: Invalid value: "": ${message}`;

const named: Schema = { type: 'object', properties: { name: { type: 'string' }, port: { type: 'integer' } } };
const intOrString: Schema = { 'x-kubernetes-int-or-string': true };

const cases: Record<string, Case> = {
  'accepts a value of its type': { schema: { type: 'string' }, value: 'a', want: [] },
  'reports the actual type': {
    schema: { type: 'integer' },
    value: 'three',
    want: [wrongType('Invalid value: "string": spec.x in body must be of type integer: "string"')],
  },
  'rejects fraction for an integer': {
    schema: { type: 'integer' },
    value: 1.5,
    want: [wrongType('Invalid value: "number": spec.x in body must be of type integer: "number"')],
  },
  'reports the format if there is one': {
    schema: { type: 'integer', format: 'int32' },
    value: 1.5,
    want: [wrongType('Invalid value: "float64": spec.x in body must be of type int32: "float64"')],
  },
  'accepts an integer for a number': { schema: { type: 'number' }, value: 3, want: [] },
  'distinguishes objects from arrays': {
    schema: { type: 'object' },
    value: [],
    want: [wrongType('Invalid value: "array": spec.x in body must be of type object: "array"')],
  },
  'rejects null unless it is nullable': {
    schema: { type: 'string' },
    value: null,
    want: [wrongType('Invalid value: "null": spec.x in body must be of type string: "null"')],
  },
  'accepts null if it is nullable': { schema: { type: 'string', nullable: true }, value: null, want: [] },
  'accepts a string for int-or-string': { schema: intOrString, value: '80%', want: [] },
  'accepts an integer for int-or-string': { schema: intOrString, value: 80, want: [] },
  'rejects other types for int-or-string': {
    schema: intOrString,
    value: true,
    want: [wrongType('Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean"')],
  },
  'requires one of the enum values': {
    schema: { type: 'string', enum: ['red', 'green'] },
    value: 'pink',
    want: ['FieldValueNotSupported spec.x: Unsupported value: "pink": supported values: "red", "green"'],
  },
  'compares enum objects by content': { schema: { enum: [{ a: 1, b: 2 }] }, value: { b: 2, a: 1 }, want: [] },
  'enforces a maximum': {
    schema: { type: 'integer', maximum: 10 },
    value: 11,
    want: [invalid('Invalid value: 11: spec.x in body should be less than or equal to 10')],
  },
  'enforces an exclusive maximum': {
    schema: { type: 'integer', maximum: 10, exclusiveMaximum: true },
    value: 10,
    want: [invalid('Invalid value: 10: spec.x in body should be less than 10')],
  },
  'enforces a minimum': {
    schema: { type: 'number', minimum: 0.5 },
    value: 0.25,
    want: [invalid('Invalid value: 0.25: spec.x in body should be greater than or equal to 0.5')],
  },
  'enforces an exclusive minimum': {
    schema: { type: 'integer', minimum: 0, exclusiveMinimum: true },
    value: 0,
    want: [invalid('Invalid value: 0: spec.x in body should be greater than 0')],
  },
  'enforces multipleOf': {
    schema: { type: 'integer', multipleOf: 3 },
    value: 10,
    want: [invalid('Invalid value: 10: spec.x in body should be a multiple of 3')],
  },
  'supports a fractional multipleOf': { schema: { type: 'number', multipleOf: 0.1 }, value: 0.3, want: [] },
  'holds int32': {
    schema: { type: 'integer', format: 'int32' },
    value: 2 ** 31,
    want: [general('Checked value must be of type integer with format int32 in spec.x')],
  },
  'counts characters, not UTF-16 units': { schema: { type: 'string', maxLength: 2 }, value: '😀😀', want: [] },
  'enforces a maximum length': {
    schema: { type: 'string', maxLength: 2 },
    value: 'abc',
    want: ['FieldValueTooLong spec.x: Too long: may not be more than 2 bytes'],
  },
  'enforces a minimum length': {
    schema: { type: 'string', minLength: 2 },
    value: '😀',
    want: [invalid('Invalid value: "😀": spec.x in body should be at least 2 chars long')],
  },
  'matches a pattern anywhere in the string': { schema: { type: 'string', pattern: 'b' }, value: 'abc', want: [] },
  'shows the pattern that does not match': {
    schema: { type: 'string', pattern: '^[a-z ]*$' },
    value: 'A',
    want: [invalid(`Invalid value: "A": spec.x in body should match '^[a-z ]*$'`)],
  },
  'runs a hostile pattern in linear time': {
    schema: { type: 'string', pattern: '^(a+)+$' },
    value: `${'a'.repeat(5000)}b`,
    want: [invalid(`Invalid value: "${'a'.repeat(5000)}b": spec.x in body should match '^(a+)+$'`)],
  },
  'enforces a format': {
    schema: { type: 'string', format: 'date-time' },
    value: 'yesterday',
    want: [wrongType('Invalid value: "yesterday": spec.x in body must be of type date-time: "yesterday"')],
  },
  'ignores unknown formats': { schema: { type: 'string', format: 'colour' }, value: 'x', want: [] },
  'enforces a minimum number of items': {
    schema: { type: 'array', minItems: 2, items: { type: 'string' } },
    value: ['a'],
    want: [invalid('Invalid value: 1: spec.x in body should have at least 2 items')],
  },
  'enforces a maximum number of items': {
    schema: { type: 'array', maxItems: 2, items: { type: 'integer' } },
    value: [1, 2, 3],
    want: ['FieldValueTooMany spec.x: Too many: 3: must have at most 2 items'],
  },
  'enforces unique items': {
    schema: { type: 'array', uniqueItems: true },
    value: [{ a: 1 }, { a: 1 }],
    want: [invalid(`Invalid value: "": spec.x in body shouldn't contain duplicates`)],
  },
  'reports a duplicate of a set once': {
    schema: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } },
    value: ['a', 'b', 'a', 'a'],
    want: ['FieldValueDuplicate spec.x[2]: Duplicate value: "a"'],
  },
  'reports a duplicate of a map list by its key': {
    schema: { type: 'array', 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'], items: named },
    value: [
      { name: 'a', port: 1 },
      { name: 'a', port: 2 },
    ],
    want: ['FieldValueDuplicate spec.x[1]: Duplicate value: map[string]interface {}{"name":"a"}'],
  },
  'joins several keys of a map list': {
    schema: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name', 'port'],
      items: named,
    },
    value: [
      { name: 'a', port: 1 },
      { name: 'a', port: 2 },
      { port: 1, name: 'a' },
    ],
    want: ['FieldValueDuplicate spec.x[2]: Duplicate value: map[string]interface {}{"name":"a", "port":1}'],
  },
  'distinguishes numbers from strings in a set': {
    schema: { type: 'array', 'x-kubernetes-list-type': 'set', items: intOrString },
    value: [1, '1'],
    want: [],
  },
  'enforces a minimum number of properties': {
    schema: { type: 'object', minProperties: 1 },
    value: {},
    want: [invalid('Invalid value: 0: spec.x in body should have at least 1 properties')],
  },
  'enforces a maximum number of properties': {
    schema: { type: 'object', maxProperties: 2, additionalProperties: true },
    value: { a: 1, b: 2, c: 3 },
    want: ['FieldValueTooMany spec.x: Too many: 3: must have at most 2 items'],
  },
  'enforces required fields': {
    schema: { ...named, required: ['name', 'constructor'] },
    value: {},
    want: ['FieldValueRequired spec.x.name: Required value', 'FieldValueRequired spec.x.constructor: Required value'],
  },
  'descends into lists and maps': {
    schema: { type: 'object', additionalProperties: { type: 'array', items: { type: 'boolean' } } },
    value: { k: [true, 1] },
    want: [
      'FieldValueTypeInvalid spec.x.k[1]: Invalid value: "integer": spec.x.k[1] in body must be of type boolean: "integer"',
    ],
  },
  'requires apiVersion and kind of an embedded resource': {
    schema: { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true },
    value: { apiVersion: '', metadata: 1 },
    want: [
      'FieldValueInvalid spec.x.apiVersion: Invalid value: "": must not be empty',
      'FieldValueRequired spec.x.kind: Required value: must not be empty',
      'FieldValueInvalid spec.x.metadata: Invalid value: 1: json: cannot unmarshal number into Go value of type v1.ObjectMeta',
    ],
  },
  'validates the metadata of an embedded resource': {
    schema: { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true },
    value: { apiVersion: 'a/b/c', kind: 'No_kind', metadata: { name: 'a/b', labels: { '-': 'x' } } },
    want: [
      'FieldValueInvalid spec.x.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
      "FieldValueInvalid spec.x.kind: Invalid value: \"No_kind\": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
      'FieldValueInvalid spec.x.metadata.name: Invalid value: "a/b": may not contain \'/\'',
      "FieldValueInvalid spec.x.metadata.labels: Invalid value: \"-\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  },
  'accepts one match of anyOf': {
    schema: { type: 'object', anyOf: [{ required: ['a'] }, { required: ['b'] }] },
    value: { b: 1 },
    want: [],
  },
  'reports the first alternative if none of anyOf matches': {
    schema: { type: 'object', anyOf: [{ required: ['a'] }, { required: ['b'] }] },
    value: {},
    want: [
      general('"spec.x" must validate at least one schema (anyOf)'),
      'FieldValueRequired spec.x.a: Required value',
    ],
  },
  'reports the alternative that got furthest': {
    schema: {
      type: 'object',
      anyOf: [{ required: ['a'] }, { properties: { b: { properties: { c: { minimum: 5 } } } } }],
    },
    value: { b: { c: 1 } },
    want: [
      general('"spec.x" must validate at least one schema (anyOf)'),
      'FieldValueInvalid spec.x.b.c: Invalid value: 1: spec.x.b.c in body should be greater than or equal to 5',
    ],
  },
  'requires exactly one match of oneOf': {
    schema: { type: 'object', oneOf: [{ required: ['a'] }, { required: ['b'] }] },
    value: { a: 1, b: 1 },
    want: [general('"spec.x" must validate one and only one schema (oneOf). Found 2 valid alternatives')],
  },
  'reports errors if none of oneOf matches': {
    schema: { type: 'object', oneOf: [{ required: ['a'] }, { required: ['b'] }] },
    value: {},
    want: [
      general('"spec.x" must validate one and only one schema (oneOf). Found none valid'),
      'FieldValueRequired spec.x.a: Required value',
    ],
  },
  'requires all of allOf': {
    schema: { type: 'integer', allOf: [{ minimum: 1 }, { maximum: 3 }] },
    value: 4,
    want: [
      invalid('Invalid value: 4: spec.x in body should be less than or equal to 3'),
      general('"spec.x" must validate all the schemas (allOf)'),
    ],
  },
  'reports that nothing of allOf validated': {
    schema: { type: 'integer', allOf: [{ minimum: 9 }] },
    value: 4,
    want: [
      invalid('Invalid value: 4: spec.x in body should be greater than or equal to 9'),
      general('"spec.x" must validate all the schemas (allOf). None validated'),
    ],
  },
  'rejects a value that matches not': {
    schema: { type: 'string', not: { enum: ['bad'] } },
    value: 'bad',
    want: [general('"spec.x" must not validate the schema (not)')],
  },
  'does not evaluate CEL rules': {
    schema: { type: 'string', 'x-kubernetes-validations': [{ rule: 'false' }] },
    value: 'a',
    want: [],
  },
};

const validate = (schema: Schema, value: unknown, options = {}) =>
  compileSchema(
    { type: 'object', properties: { spec: { type: 'object', properties: { x: schema } } } },
    options,
  ).validate({ spec: { x: value } });

describe('validate', () => {
  for (const [name, { schema, value, want }] of Object.entries(cases)) {
    it(name, () => {
      const got = validate(schema, value).map(({ reason, field, message }) => `${reason} ${field}: ${message}`);
      assert.deepEqual(got, want);
    });
  }

  it('reports required fields of the root without a dot', () => {
    const [error] = compileSchema({ type: 'object', required: ['spec'] }).validate({});
    assert.equal(error?.field, 'spec');
  });

  it('leaves duplicates to built-in kinds', () => {
    const set: Schema = { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } };
    assert.deepEqual(validate(set, ['a', 'a'], { builtIn: true }), []);
  });

  it('limits the number of reported errors', () => {
    const list: Schema = { type: 'array', items: { type: 'string' } };
    assert.equal(
      validate(
        list,
        Array.from({ length: 5000 }, (_, i) => i),
      ).length,
      256,
    );
  });
});
