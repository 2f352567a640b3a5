/**
 * Builds the OpenAPI v3 documents, one per group and version. `kubectl explain` and kubectl's checks of query
 * parameters use them.
 */
import { resourcesIn } from '#engine/discovery/group-order.ts';
import { modelName, OBJECT_META } from '#engine/openapi/model-names.ts';
import { NamedTypes } from '#engine/openapi/named-types.ts';
import { operationsOf, type ApiOperation } from '#engine/openapi/operations.ts';
import {
  addEmbeddedMetadata,
  listSchema,
  METADATA_DESCRIPTION,
  sharedSchemas,
  TYPE_META,
  type DocumentSchema,
} from '#engine/openapi/shared-schemas.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { isRecord } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';

interface OpenApiV3Document {
  openapi: '3.0.0';
  info: { title: string; version: string };
  paths: Record<string, Record<string, unknown>>;
  components: { schemas: Record<string, DocumentSchema> };
}

const refTo = (model: string) => `#/components/schemas/${model}`;

/** Returns the path of a document in the index: `api/v1`, `apis/apps/v1`. */
export function documentPath(group: string, version: string): string {
  return group === '' ? `api/${version}` : `apis/${group}/${version}`;
}

/** Returns the document of a group version, or undefined if it is not served. */
export function openApiV3Document(
  resources: readonly Resource[],
  group: string,
  version: string,
): OpenApiV3Document | undefined {
  const members = resourcesIn(resources, group, version);
  if (members === undefined) return undefined;
  const schemas = sharedSchemas(refTo, { scale: members.some((resource) => resource.scale !== undefined) });
  const types = new NamedTypes();
  const paths: OpenApiV3Document['paths'] = {};
  for (const resource of members) {
    const model = modelName(resource, resource.kind);
    schemas[model] = kindSchema(resource, types);
    if (resource.verbs.includes('list')) {
      schemas[modelName(resource, resource.listKind)] = listSchema(resource, model, refTo);
    }
    for (const operation of operationsOf(resource)) {
      const item = (paths[operation.path] ??= pathItem(operation));
      item[operation.method] = describe(operation);
    }
  }
  for (const [model, part] of types.definitions) schemas[model] = withReferences(part);
  return { openapi: '3.0.0', info: { title: 'Kubernetes', version: 'unversioned' }, paths, components: { schemas } };
}

function kindSchema(resource: Resource, types: NamedTypes): DocumentSchema {
  const { schema, group, version, kind, builtIn } = resource;
  const whole = builtIn ? withReferences(types.ofKind(schema)) : withEmbedded(schema);
  return {
    ...whole,
    type: 'object',
    properties: { ...whole.properties, ...TYPE_META, metadata: reference(OBJECT_META, METADATA_DESCRIPTION) },
    'x-kubernetes-group-version-kind': [{ group, version, kind }],
  };
}

/** Builds a reference. OpenAPI 3.0 ignores keywords beside $ref, so others are combined with allOf. */
function reference(model: string, description: string | undefined, more: DocumentSchema = {}): DocumentSchema {
  const $ref = refTo(model);
  return description === undefined && Object.keys(more).length === 0
    ? { $ref }
    : { ...(description === undefined ? {} : { description }), ...more, allOf: [{ $ref }] };
}

function withReferences({ $ref, ...schema }: DocumentSchema): DocumentSchema {
  if ($ref !== undefined) {
    const { description, ...more } = schema;
    return reference($ref, description, more);
  }
  const { properties, items, additionalProperties } = schema;
  const out: DocumentSchema = { ...schema };
  if (properties !== undefined) {
    out.properties = Object.create(null) as Record<string, DocumentSchema>;
    for (const [name, child] of Object.entries(properties)) out.properties[name] = withReferences(child);
  }
  if (items !== undefined) out.items = withReferences(items);
  if (isRecord(additionalProperties)) out.additionalProperties = withReferences(additionalProperties);
  return out;
}

/** Adds metadata to embedded objects. */
function withEmbedded(schema: Schema): DocumentSchema {
  let out: DocumentSchema = schema;
  if (schema.properties !== undefined) {
    const properties: Record<string, DocumentSchema> = Object.create(null);
    for (const [name, child] of Object.entries(schema.properties)) properties[name] = withEmbedded(child);
    out = { ...out, properties };
  }
  if (schema.items !== undefined) out = { ...out, items: withEmbedded(schema.items) };
  if (isRecord(schema.additionalProperties)) {
    out = { ...out, additionalProperties: withEmbedded(schema.additionalProperties) };
  }
  return schema['x-kubernetes-embedded-resource'] === true ? addEmbeddedMetadata(out, refTo(OBJECT_META)) : out;
}

function pathItem({ pathParameters }: ApiOperation): Record<string, unknown> {
  if (pathParameters.length === 0) return {};
  const parameters = pathParameters.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } }));
  return { parameters };
}

function describe({ operationId, query, body, consumes, responseModel, code, action, gvk }: ApiOperation): object {
  const content =
    responseModel === undefined ? {} : { content: { 'application/json': { schema: { $ref: refTo(responseModel) } } } };
  return {
    operationId,
    ...(query.length === 0
      ? {}
      : { parameters: query.map(({ name, type }) => ({ name, in: 'query', schema: { type } })) }),
    ...(body === undefined ? {} : { requestBody: requestBody(body, consumes) }),
    responses: { [code]: { description: 'OK', ...content } },
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': gvk,
  };
}

function requestBody(model: string, consumes: readonly string[] = ['*/*']): object {
  return { content: Object.fromEntries(consumes.map((type) => [type, { schema: { $ref: refTo(model) } }])) };
}
