import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { compileSchema } from '#engine/registry/structural/compile.ts';
import { decodeTypeError } from '#engine/registry/structural/decode-type-error.ts';
import { deepClone } from '#kube/deep.ts';
import { isRecord } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';

const field = fc.constantFrom('a', 'b', 'c', 'd', 'constructor');

const scalarSchema = fc.constantFrom<Schema>(
  { type: 'string' },
  { type: 'string', default: 'x', maxLength: 2 },
  { type: 'integer', default: 7, minimum: 0 },
  { type: 'boolean', nullable: true },
  { 'x-kubernetes-int-or-string': true },
);

const objectOf = (properties: Record<string, Schema>): Schema => ({ type: 'object', properties });

const { schema: schemas } = fc.letrec<{ schema: Schema }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 4 },
    scalarSchema,
    fc.dictionary(field, tie('schema'), { maxKeys: 4, noNullPrototype: true }).map(objectOf),
    fc
      .dictionary(field, tie('schema'), { maxKeys: 2, noNullPrototype: true })
      .map((properties): Schema => ({ ...objectOf(properties), 'x-kubernetes-preserve-unknown-fields': true })),
    tie('schema').map((items): Schema => ({ type: 'array', items })),
    tie('schema').map((additionalProperties): Schema => ({ type: 'object', additionalProperties })),
  ),
}));

const rootSchema: fc.Arbitrary<Schema> = fc
  .dictionary(field, schemas, { maxKeys: 5, noNullPrototype: true })
  .map(objectOf);

const { value: values } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom(null, true, 0, -1, 2.5, '', 'abc'),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(field, tie('value'), { maxKeys: 5, noNullPrototype: true }),
  ),
}));

const objects = fc.dictionary(field, values, { maxKeys: 6, noNullPrototype: true }) as fc.Arbitrary<
  Record<string, unknown>
>;

/** A simple oracle: reports whether there is a field that the schema does not name. */
function hasUnknown(value: unknown, schema: Schema | undefined, keepsAll = false): boolean {
  const preserve = keepsAll || schema?.['x-kubernetes-preserve-unknown-fields'] === true;
  if (Array.isArray(value)) {
    if (schema?.items === undefined && preserve) return false;
    return value.some((item) => hasUnknown(item, schema?.items, preserve));
  }
  if (!isRecord(value)) return false;
  return Object.entries(value).some(([key, item]) => {
    const known = Object.hasOwn(schema?.properties ?? {}, key) ? schema?.properties?.[key] : undefined;
    const inner = known ?? (isRecord(schema?.additionalProperties) ? schema.additionalProperties : undefined);
    return inner === undefined ? !preserve : hasUnknown(item, inner);
  });
}

const run = (check: (schema: Schema, object: Record<string, unknown>) => void) =>
  fc.assert(fc.property(rootSchema, objects, check), { numRuns: 300 });

describe('any compiled schema', () => {
  it('prunes all unknown fields and reports exactly those', () => {
    run((schema, object) => {
      const had = hasUnknown(object, schema);
      const paths: string[] = [];
      compileSchema(schema, { root: false }).prune(object, (path) => paths.push(path));
      assert.equal(paths.length > 0, had);
      assert.equal(hasUnknown(object, schema), false);
    });
  });

  it('prunes and defaults idempotently', () => {
    run((schema, sent) => {
      for (const dropEmpty of [false, true]) {
        const object = deepClone(sent);
        const compiled = compileSchema(schema, { root: false, dropEmpty });
        compiled.prune(object);
        compiled.applyDefaults(object);
        const once = deepClone(object);
        compiled.prune(object, (path) => assert.fail(`${path} was left`));
        compiled.applyDefaults(object);
        assert.deepEqual(object, once);
      }
    });
  });

  it('returns a decode error exactly if an object does not decode', () => {
    run((schema, object) => {
      const compiled = compileSchema(schema, { root: false });
      assert.equal(compiled.decodes(object), decodeTypeError(object, compiled) === undefined);
    });
  });

  it('validates without changes and finds undecodable values', () => {
    run((schema, object) => {
      const compiled = compileSchema(schema, { root: false });
      const before = deepClone(object);
      const errors = compiled.validate(object);
      assert.deepEqual(object, before);
      if (!compiled.decodes(object)) assert.ok(errors.length > 0);
    });
  });
});
