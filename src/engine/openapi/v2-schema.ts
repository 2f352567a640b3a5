/**
 * A structural schema as OpenAPI v2 can say it and kubectl 1.20 can read it. Both know less: no null, no oneOf, arrays
 * must have items, and an object that names some properties may have no others. What cannot be said becomes a schema
 * that allows anything, so that kubectl never refuses what the server would take.
 */
import { modelName, OBJECT_META } from '#engine/openapi/model-names.ts';
import { embedded, METADATA_WORDS, TYPE_META, type DocumentSchema } from '#engine/openapi/shared-schemas.ts';
import type { NamedParts } from '#engine/openapi/named-parts.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { isRecord } from '#kube/meta.ts';
import { isQuantity } from '#kube/schema-dsl.ts';

export const refToDefinition = (model: string) => `#/definitions/${model}`;

export function kindDefinition(resource: Resource, parts: NamedParts): [model: string, definition: DocumentSchema] {
  const { schema, group, version, kind, builtIn } = resource;
  const gvk = { 'x-kubernetes-group-version-kind': [{ group, version, kind }] };
  const model = modelName(resource, kind);
  // Naming metadata alone would make kubectl refuse every other field.
  if (schema['x-kubernetes-preserve-unknown-fields'] === true) return [model, { type: 'object', ...gvk }];
  const converted = toV2(builtIn ? parts.ofKind(schema, model) : schema, builtIn);
  const metadata = { description: METADATA_WORDS, $ref: refToDefinition(OBJECT_META) };
  const properties = { ...converted.properties, ...TYPE_META, metadata };
  return [model, { ...converted, type: 'object', properties, ...gvk }];
}

/** Extensions that clients act upon; validation rules are the server's. */
const EXTENSIONS = [
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-embedded-resource',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-map-type',
  'x-kubernetes-patch-strategy',
  'x-kubernetes-patch-merge-key',
] as const;

/** The type IntOrString of built-in kinds is a string to v2; custom ones are left untyped, as kube-apiserver does. */
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
  return schema['x-kubernetes-embedded-resource'] === true ? embedded(object, refToDefinition(OBJECT_META)) : object;
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
  // A required field that may be null looks absent to kubectl.
  const demanded = required.filter((name) => properties[name]?.nullable !== true);
  return { ...out, properties: converted, ...(demanded.length === 0 ? {} : { required: demanded }) };
}
