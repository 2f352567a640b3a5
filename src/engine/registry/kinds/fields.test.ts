/** Compares the fields of the kinds in their schemas and in the protobuf tables, both as of Kubernetes 1.32. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { protobufKinds } from '#engine/protobuf/decode-protobuf.ts';
import { type MessageField, messageNamed } from '#engine/protobuf/message-table.ts';
import { specialTypes } from '#engine/protobuf/special-types.ts';
import { builtInResources } from '#engine/registry/kinds/all.ts';
import { apiVersionOf } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';

const COMMON: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata']);

/** Returns the fields of a message, including those of inlined messages. */
function fieldsOf(message: string): MessageField[] {
  return messageNamed(message).fields.flatMap((field) => (field.name === '' ? fieldsOf(field.message) : [field]));
}

function inner(schema: Schema, { shape }: MessageField): Schema {
  if (shape === 'list') return schema.items ?? {};
  if (shape === 'one') return schema;
  return typeof schema.additionalProperties === 'object' ? schema.additionalProperties : {};
}

/** Returns the fields that only the schema or only the table has. */
function differences(schema: Schema, message: string, path: string): string[] {
  // registry/metadata.ts describes metadata; a template's metadata is open.
  if (specialTypes.has(message) || message === 'ObjectMeta') return [];
  const properties = schema.properties ?? {};
  const fields = fieldsOf(message).filter(({ name }) => path.includes('.') || !COMMON.has(name));
  const known = new Set(fields.map(({ name }) => name));
  return [
    ...Object.keys(properties).flatMap((name) => (known.has(name) ? [] : [`${path}.${name}: only in the schema`])),
    ...fields.flatMap((field) => {
      const at = `${path}.${field.name}`;
      const property = properties[field.name];
      if (property === undefined) return [`${at}: only in the table`];
      return field.message === '' ? [] : differences(inner(property, field), field.message, at);
    }),
  ];
}

for (const resource of builtInResources) {
  const { kind, schema } = resource;
  test(`${kind}: schema and protobuf table have the same fields`, () => {
    assert.ok(
      protobufKinds[apiVersionOf(resource)]?.split(' ').includes(kind),
      'the message must have the name of the kind',
    );
    assert.ok(fieldsOf(kind).length > 1);
    assert.deepEqual(differences(schema, kind, kind), []);
  });
}

test('atomic maps and lists of patches and applies', () => {
  const mapTypes = (kind: string, ...path: string[]) => {
    let schema = builtInResources.find((resource) => resource.kind === kind)?.schema;
    for (const name of path) schema = schema?.properties?.[name];
    return schema?.['x-kubernetes-map-type'] ?? 'granular';
  };
  assert.equal(mapTypes('Pod', 'spec', 'nodeSelector'), 'atomic');
  assert.equal(mapTypes('Service', 'spec', 'selector'), 'atomic');
  assert.equal(mapTypes('PersistentVolume', 'spec', 'claimRef'), 'granular');
  assert.equal(mapTypes('Event', 'involvedObject'), 'atomic');
});
