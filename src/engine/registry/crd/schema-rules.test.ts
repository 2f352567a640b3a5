import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aCrd, aVersion } from '#engine/registry/crd/testing/custom-resource-definition.ts';
import { validateCrd } from '#engine/registry/crd/validate-crd.ts';
import type { Schema } from '#kube/schema.ts';

const at = 'spec.versions[0].schema.openAPIV3Schema';

/** The schema of the property `x`, or a whole root, and the expected errors without the path to it. */
interface Case {
  x?: unknown;
  root?: unknown;
  want: string[];
}

const inX = (...texts: string[]) => texts.map((text) => `${at}.properties[x]${text}`);
const inRoot = (...texts: string[]) => texts.map((text) => `${at}${text}`);

const named = { type: 'object', required: ['name'], properties: { name: { type: 'string' } } };

const cases: Record<string, Case> = {
  'accepts structural schemas': {
    root: {
      type: 'object',
      description: 'all of it',
      properties: {
        apiVersion: { type: 'string' },
        kind: { type: 'string' },
        metadata: { type: 'object', properties: { name: { type: 'string', maxLength: 10 } } },
        port: { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
        other: {
          'x-kubernetes-int-or-string': true,
          allOf: [{ anyOf: [{ type: 'integer' }, { type: 'string' }] }, { pattern: '^a' }],
        },
        free: { 'x-kubernetes-preserve-unknown-fields': true },
        list: { type: 'array', items: named, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] },
        map: { type: 'object', additionalProperties: { type: 'string' } },
        template: {
          type: 'object',
          'x-kubernetes-embedded-resource': true,
          'x-kubernetes-preserve-unknown-fields': true,
        },
      },
      anyOf: [{ required: ['port'] }, { properties: { map: { minProperties: 1 } } }],
    },
    want: [],
  },
  'requires a type at the root': { root: {}, want: inRoot('.type: Required value: must not be empty at the root') },
  'requires an object at the root': {
    root: { type: 'string' },
    want: inRoot('.type: Invalid value: "string": must be object at the root'),
  },
  'requires a type for each field': {
    x: {},
    want: inX('.type: Required value: must not be empty for specified object fields'),
  },
  'requires a type for items': {
    x: { type: 'array', items: {} },
    want: inX('.items.type: Required value: must not be empty for specified array items'),
  },
  'requires items for an array': { x: { type: 'array' }, want: inX('.items: Required value: must be specified') },
  'rejects unknown types': {
    x: { type: 'text' },
    want: inX(
      '.type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string"',
    ),
  },
  'rejects map at the root': {
    root: { type: 'object', additionalProperties: true },
    want: inRoot('.additionalProperties: Forbidden: must not be used at the root'),
  },
  'allows either properties or a map': {
    x: { type: 'object', properties: {}, additionalProperties: { type: 'string' } },
    want: [],
  },
  'rejects map beside properties': {
    x: { ...named, additionalProperties: { type: 'string' } },
    want: inX('.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive'),
  },
  'rejects x-kubernetes-preserve-unknown-fields: false': {
    x: { type: 'object', 'x-kubernetes-preserve-unknown-fields': false },
    want: inX('.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined'),
  },
  'rejects structure inside anyOf and not': {
    x: { type: 'string', anyOf: [{ type: 'string', description: 'a', default: 'b' }], not: { nullable: true } },
    want: inX(
      '.anyOf[0].default: Forbidden: must be undefined to be structural',
      '.anyOf[0].description: Forbidden: must be empty to be structural',
      '.anyOf[0].type: Forbidden: must be empty to be structural',
      '.not.nullable: Forbidden: must be false to be structural',
    ),
  },
  'allows int-or-string as anyOf, and first in allOf': {
    x: {
      'x-kubernetes-int-or-string': true,
      allOf: [{ anyOf: [{ type: 'integer' }, { type: 'string' }] }, { pattern: 'a' }],
    },
    want: [],
  },
  'rejects int-or-string elsewhere in allOf': {
    x: { 'x-kubernetes-int-or-string': true, allOf: [{}, { anyOf: [{ type: 'integer' }, { type: 'string' }] }] },
    want: inX(
      '.allOf[1].anyOf[0].type: Forbidden: must be empty to be structural',
      '.allOf[1].anyOf[1].type: Forbidden: must be empty to be structural',
    ),
  },
  'rejects a schema of metadata other than its name': {
    root: { type: 'object', properties: { metadata: { type: 'object', description: 'a' } } },
    want: inRoot(
      '.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified',
    ),
  },
  'rejects embedded resources inside metadata': {
    x: {
      type: 'object',
      'x-kubernetes-embedded-resource': true,
      properties: {
        metadata: {
          type: 'object',
          properties: {
            a: {
              type: 'object',
              'x-kubernetes-embedded-resource': true,
              'x-kubernetes-preserve-unknown-fields': true,
            },
          },
        },
      },
    },
    want: inX(
      '.properties[metadata].properties[a].x-kubernetes-embedded-resource: Forbidden: must not be used inside of resource meta',
    ),
  },
  'requires defaults that satisfy their rules': {
    x: { type: 'integer', default: 3, 'x-kubernetes-validations': [{ rule: 'self < 3' }] },
    want: inX('.default: Invalid value: "integer": failed rule: self < 3'),
  },
  'requires defaults that satisfy rules with an optional old value': {
    x: {
      type: 'integer',
      default: 3,
      'x-kubernetes-validations': [{ rule: 'oldSelf.hasValue()', optionalOldSelf: true, message: 'not new' }],
    },
    want: inX('.default: Invalid value: "integer": not new'),
  },
  'requires non-empty rules and messages in one line': {
    x: {
      type: 'object',
      properties: { a: { type: 'string' } },
      'x-kubernetes-validations': [
        { rule: ' ' },
        { rule: 'true', message: ' ' },
        { rule: 'true', message: 'a\nb' },
        { rule: 'true ||\ntrue' },
        { rule: 'true', messageExpression: ' ' },
        { rule: 'true', reason: 'Bad' },
        { rule: 'true', fieldPath: '.b' },
        { rule: 'true', fieldPath: '.a' },
      ],
    },
    want: inX(
      '.x-kubernetes-validations[0].rule: Required value: rule is not specified',
      '.x-kubernetes-validations[1].message: Invalid value: " ": message must be non-empty if specified',
      '.x-kubernetes-validations[2].message: Invalid value: "a\\nb": message must not contain line breaks',
      '.x-kubernetes-validations[3].message: Required value: message must be specified if rule contains line breaks',
      '.x-kubernetes-validations[4].messageExpression: Required value: messageExpression must be non-empty if specified',
      '.x-kubernetes-validations[5].reason: Unsupported value: "Bad": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"',
      '.x-kubernetes-validations[6].fieldPath: Invalid value: ".b": fieldPath must be a valid path',
    ),
  },
  'requires rules that compile': {
    x: {
      type: 'string',
      maxLength: 10,
      'x-kubernetes-validations': [
        { rule: 'self +', message: 'a' },
        { rule: 'true', messageExpression: '1' },
      ],
    },
    want: inX(
      '.x-kubernetes-validations[0].rule: Invalid value: apiextensions.ValidationRule{Rule:"self +", Message:"a", MessageExpression:"", Reason:(*apiextensions.FieldValueErrorReason)(nil), FieldPath:"", OptionalOldSelf:(*bool)(nil)}: compilation failed: ERROR: <input>:1:7: Syntax error:',
      '.x-kubernetes-validations[1].messageExpression: Invalid value: apiextensions.ValidationRule{Rule:"true", Message:"", MessageExpression:"1", Reason:(*apiextensions.FieldValueErrorReason)(nil), FieldPath:"", OptionalOldSelf:(*bool)(nil)}: messageExpression must evaluate to a string',
    ),
  },
  'rejects oldSelf where old values cannot be correlated': {
    x: {
      type: 'array',
      maxItems: 2,
      items: { type: 'string', maxLength: 5, 'x-kubernetes-validations': [{ rule: 'self == oldSelf' }] },
    },
    want: inX(
      '.items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within spec.versions[0].schema.openAPIV3Schema.properties[x]',
    ),
  },
  'rejects optionalOldSelf in a rule without oldSelf': {
    x: { type: 'string', 'x-kubernetes-validations': [{ rule: "self == 'a'", optionalOldSelf: true }] },
    want: inX(
      '.x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule',
    ),
  },
  'multiplies the cost of a rule by the number of values': {
    x: {
      type: 'array',
      items: { type: 'string', 'x-kubernetes-validations': [{ rule: "self.contains('abcdefghijk')" }] },
    },
    want: inX(
      '.items.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x',
      '.items.x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema',
    ).concat(
      inRoot(
        ': Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x',
      ),
    ),
  },
  'reports by how much a rule is too expensive': {
    x: {
      type: 'array',
      items: { type: 'number' },
      'x-kubernetes-validations': [{ rule: 'self.all(x, x > 1.0 && x > 2.0 && x > 3.0)' }],
    },
    want: inX(
      '.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of 1.415577x (try simplifying',
    ),
  },
  'requires fields of anyOf to be described outside of it': {
    root: { type: 'object', anyOf: [{ properties: { y: { minimum: 1 } } }] },
    want: inRoot(
      '.properties[y]: Required value: because it is defined in spec.versions[0].schema.openAPIV3Schema.anyOf[0].properties[y]',
    ),
  },
  'rejects restrictions of metadata other than its name': {
    root: { type: 'object', properties: { metadata: { type: 'object', properties: { labels: { type: 'object' } } } } },
    want: inRoot(
      '.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified',
    ),
  },
  'requires kind to be a string': {
    root: { type: 'object', properties: { kind: { type: 'integer' } } },
    want: inRoot('.properties[kind].type: Invalid value: "integer": must be string'),
  },
  'requires patterns that RE2 supports': {
    x: { type: 'string', pattern: '(a' },
    want: inX(
      '.pattern: Invalid value: "(a": must be a valid regular expression, but isn\'t: error parsing regexp: missing closing ): `(a`',
    ),
  },
  'requires an embedded resource to be an object with content': {
    x: { type: 'object', 'x-kubernetes-embedded-resource': true },
    want: inX(
      '.properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields',
    ),
  },
  'rejects other extensions with int-or-string': {
    x: { 'x-kubernetes-int-or-string': true, 'x-kubernetes-preserve-unknown-fields': true },
    want: inX(
      '.x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if x-kubernetes-int-or-string is true',
    ),
  },
  'rejects uniqueItems': {
    x: { type: 'array', items: { type: 'string' }, uniqueItems: true },
    want: inX(
      '.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic',
    ),
  },
  'rejects references': {
    x: { type: 'object', $ref: '#/a', definitions: {} },
    want: inX('.definitions: Forbidden: definitions is not supported', '.$ref: Forbidden: $ref is not supported'),
  },
  'requires keys for a list of type map': {
    x: { type: 'array', 'x-kubernetes-list-type': 'map', items: named },
    want: inX('.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map'),
  },
  'requires list map keys that exist, are required and scalar': {
    x: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['a', 'b'],
      items: { type: 'object', properties: { a: { type: 'object', nullable: true } } },
    },
    want: inX(
      '.items.properties[a].type: Invalid value: "object": must be a scalar type if parent array\'s x-kubernetes-list-type is map',
      '.items.properties[a].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property',
      '.items.properties[a].nullable: Forbidden: this property is in x-kubernetes-list-map-keys, so it cannot be nullable',
      '.x-kubernetes-list-map-keys: Invalid value: ["a","b"]: entries must all be names of item properties',
    ),
  },
  'requires sets of objects to be atomic': {
    x: { type: 'array', 'x-kubernetes-list-type': 'set', items: named },
    want: inX(
      '.items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set',
    ),
  },
  'requires list types on arrays and map types on objects': {
    x: { type: 'string', 'x-kubernetes-list-type': 'bag', 'x-kubernetes-map-type': 'atomic' },
    want: inX(
      '.type: Invalid value: "string": must be object if x-kubernetes-map-type is specified',
      '.type: Invalid value: "string": must be array if x-kubernetes-list-type is specified',
      '.x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map"',
    ),
  },
  'requires a rule in each CEL validation': {
    x: { type: 'string', 'x-kubernetes-validations': [{ rule: ' ' }, { rule: 'a\nb' }, { rule: 'a', reason: 'Why' }] },
    want: inX(
      '.x-kubernetes-validations[0].rule: Required value: rule is not specified',
      '.x-kubernetes-validations[1].message: Required value: message must be specified if rule contains line breaks',
      '.x-kubernetes-validations[2].reason: Unsupported value: "Why": supported values: "FieldValueDuplicate"',
    ),
  },
  'requires defaults that are valid': {
    x: { type: 'integer', default: 'three' },
    want: inX('.default: Invalid value: "string": default in body must be of type integer: "string"'),
  },
  'requires defaults without unknown fields': {
    x: { ...named, default: { name: 'a', y: 1 } },
    want: inX('.default: Invalid value: {"name":"a","y":1}: must not have unknown fields'),
  },
  'rejects defaults in metadata': {
    root: {
      type: 'object',
      properties: { metadata: { type: 'object', properties: { name: { type: 'string', default: 'a' } } } },
    },
    want: inRoot('.properties[metadata].properties[name].default: Forbidden: must not be set in top-level metadata'),
  },
  'rejects null at the root': {
    root: { type: 'object', nullable: true },
    want: inRoot('.nullable: Forbidden: nullable cannot be true at the root'),
  },
  'rejects a schema that is not an object': { x: 'string', want: inRoot('.properties.x: Invalid value: "string"') },
  'requires keywords of the right type': {
    x: { type: 'string', maxLength: 'ten', required: ['a', 1] },
    want: inX('.maxLength: Invalid value: "string"', '.required[1]: Invalid value: "integer"'),
  },
  'rejects an array of schemas for items': {
    x: { type: 'array', items: [{ type: 'string' }] },
    want: inX('.items: Forbidden: items must be a schema object and not an array'),
  },
};

describe('the schema of a definition', () => {
  for (const [name, { x, root, want }] of Object.entries(cases)) {
    it(name, () => {
      const schema = (root ?? { type: 'object', properties: { x } }) as Schema;
      const got = validateCrd(aCrd({ versions: [aVersion({ schema: { openAPIV3Schema: schema } })] }));
      const texts = got.map(({ field, message }) => `${field}: ${message}`);
      assert.equal(texts.length, want.length, texts.join('\n'));
      for (const [i, text] of want.entries()) assert.ok(texts[i]?.startsWith(text), `${texts[i]}\nwanted ${text}`);
    });
  }

  it('limits the number of reported errors', () => {
    const properties = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`f${i}`, {}]));
    const schema: Schema = { type: 'object', properties };
    const got = validateCrd(aCrd({ versions: [aVersion({ schema: { openAPIV3Schema: schema } })] }));
    assert.equal(got.length, 256);
  });
});
