/**
 * Converts a structural schema to OpenAPI v2, in the dialect that kubectl 1.20 validates with. Both are limited: no
 * null, no oneOf, arrays must have items, and an object with named properties allows no others. A schema that cannot be
 * expressed becomes one that allows anything, so kubectl never rejects what the server would accept.
 */
import { modelName, OBJECT_META } from '#engine/openapi/model-names.ts';
import {
  addEmbeddedMetadata,
  METADATA_DESCRIPTION,
  TYPE_META,
  type DocumentSchema,
} from '#engine/openapi/shared-schemas.ts';
import type { NamedTypes } from '#engine/openapi/named-types.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { isRecord } from '#kube/meta.ts';
import { isQuantity } from '#kube/schema-dsl.ts';

export const refToDefinition = (model: string) => `#/definitions/${model}`;

export function kindDefinition(resource: Resource, types: NamedTypes): [model: string, definition: DocumentSchema] {
  const { schema, group, version, kind, builtIn } = resource;
  const gvk = { 'x-kubernetes-group-version-kind': [{ group, version, kind }] };
  const model = modelName(resource, kind);
  // With metadata as the only named property, kubectl would reject every other field.
  if (schema['x-kubernetes-preserve-unknown-fields'] === true) return [model, { type: 'object', ...gvk }];
  const converted = toV2(builtIn ? types.ofKind(schema) : schema, builtIn);
  const metadata = { description: METADATA_DESCRIPTION, $ref: refToDefinition(OBJECT_META) };
  const properties = { ...converted.properties, ...TYPE_META, metadata };
  return [model, { ...converted, type: 'object', properties, ...gvk }];
}

/** Extensions that clients use. Validation rules are left to the server. */
const EXTENSIONS = [
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-embedded-resource',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-map-type',
  'x-kubernetes-patch-strategy',
  'x-kubernetes-patch-merge-key',
] as const;

/**
 * Converts a schema. IntOrString becomes a string for built-in kinds and stays untyped for custom kinds, as in
 * kube-apiserver.
 */
export function toV2(schema: DocumentSchema, builtIn: boolean): DocumentSchema {
  const out: DocumentSchema = {};
  if (schema.description !== undefined) out.description = schema.description;
  for (const name of EXTENSIONS) {
    if (schema[name] !== undefined) Object.assign(out, { [name]: schema[name] });
  }
  if (schema.$ref !== undefined) return { ...out, $ref: refToDefinition(schema.$ref) };
  if (builtIn && isQuantity(schema)) return { ...out, type: 'string' };
  if (schema['x-kubernetes-int-or-string'] === true) {
    return builtIn
      ? { ...out, type: 'string', format: 'int-or-string' }
      : { ...out, 'x-kubernetes-int-or-string': true };
  }
  // Go's RawExtension and FieldsV1.
  if (builtIn && schema.type === 'object' && schema.properties === undefined && schema.nullable !== true) {
    return objectToV2(schema, { ...out, type: 'object' }, builtIn);
  }
  if (schema.nullable === true || schema['x-kubernetes-preserve-unknown-fields'] === true) {
    return schema.type === 'object' || schema.type === 'array' || schema.nullable === true ? out : scalar(schema, out);
  }
  if (schema.type === 'array') {
    return schema.items === undefined ? out : { ...out, type: 'array', items: toV2(schema.items, builtIn) };
  }
  if (schema.type !== 'object') return scalar(schema, out);
  const object = objectToV2(schema, { ...out, type: 'object' }, builtIn);
  return schema['x-kubernetes-embedded-resource'] === true
    ? addEmbeddedMetadata(object, refToDefinition(OBJECT_META))
    : object;
}

function scalar({ type, format }: DocumentSchema, out: DocumentSchema): DocumentSchema {
  return { ...out, ...(type === undefined ? {} : { type }), ...(format === undefined ? {} : { format }) };
}

function objectToV2(schema: DocumentSchema, out: DocumentSchema, builtIn: boolean): DocumentSchema {
  const { additionalProperties, properties = {}, required = [] } = schema;
  if (isRecord(additionalProperties)) return { ...out, additionalProperties: toV2(additionalProperties, builtIn) };
  const names = Object.keys(properties);
  if (names.length === 0) return out;
  const converted: Record<string, DocumentSchema> = Object.create(null);
  for (const name of names) converted[name] = toV2(properties[name]!, builtIn);
  // kubectl treats null as absent, so a nullable field must not be required.
  const demanded = required.filter((name) => properties[name]?.nullable !== true);
  return { ...out, properties: converted, ...(demanded.length === 0 ? {} : { required: demanded }) };
}
