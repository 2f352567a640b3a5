/**
 * Builds the OpenAPI v2 (swagger) document, which holds all kinds. Older kubectl versions validate manifests with it
 * before they send them.
 */
import type { GroupVersionKind, Resource } from '#engine/registry/resource.ts';
import { modelName } from '#engine/openapi/model-names.ts';
import { NamedTypes } from '#engine/openapi/named-types.ts';
import { operationsOf, type Method, type ApiOperation } from '#engine/openapi/operations.ts';
import { listSchema, sharedSchemas, type DocumentSchema } from '#engine/openapi/shared-schemas.ts';
import { kindDefinition, refToDefinition, toV2 } from '#engine/openapi/v2-schema.ts';

export type SwaggerParameter =
  | { name: string; in: 'query'; type: string }
  | { name: string; in: 'path'; type: string; required: true }
  | { name: string; in: 'body'; schema: DocumentSchema; required?: boolean };

export interface SwaggerOperation {
  operationId: string;
  /** Set if it differs from the document's default. */
  consumes?: readonly string[];
  parameters?: SwaggerParameter[];
  responses: Record<string, { description: string; schema?: DocumentSchema }>;
  'x-kubernetes-action': string;
  'x-kubernetes-group-version-kind': GroupVersionKind;
}

export type SwaggerPathItem = Partial<Record<Method, SwaggerOperation>> & { parameters?: SwaggerParameter[] };

export interface SwaggerDocument {
  swagger: '2.0';
  info: { title: string; version: string };
  consumes: readonly string[];
  produces: readonly string[];
  paths: Record<string, SwaggerPathItem>;
  definitions: Record<string, DocumentSchema>;
}

const MEDIA_TYPES: readonly string[] = ['application/json', 'application/yaml'];

export function openApiV2(resources: readonly Resource[]): SwaggerDocument {
  const scale = resources.some((resource) => resource.scale !== undefined);
  const definitions = sharedSchemas(refToDefinition, { scale });
  const types = new NamedTypes();
  const paths: SwaggerDocument['paths'] = {};
  for (const resource of resources) {
    const [model, definition] = kindDefinition(resource, types);
    definitions[model] = definition;
    if (resource.verbs.includes('list')) {
      definitions[modelName(resource, resource.listKind)] = listSchema(resource, model, refToDefinition);
    }
    for (const operation of operationsOf(resource)) {
      const item = (paths[operation.path] ??= pathItem(operation));
      item[operation.method] = describe(operation);
    }
  }
  for (const [model, part] of types.definitions) definitions[model] = toV2(part, true);
  return {
    swagger: '2.0',
    info: { title: 'Kubernetes', version: 'unversioned' },
    consumes: MEDIA_TYPES,
    produces: MEDIA_TYPES,
    paths,
    definitions,
  };
}

function pathItem({ pathParameters }: ApiOperation): SwaggerPathItem {
  if (pathParameters.length === 0) return {};
  return { parameters: pathParameters.map((name) => ({ name, in: 'path', type: 'string', required: true })) };
}

function describe({
  operationId,
  query,
  body,
  consumes,
  responseModel,
  code,
  action,
  gvk,
}: ApiOperation): SwaggerOperation {
  const parameters: SwaggerParameter[] = query.map(({ name, type }) => ({ name, in: 'query', type }));
  if (body !== undefined) parameters.unshift({ name: 'body', in: 'body', schema: { $ref: refToDefinition(body) } });
  const schema = responseModel === undefined ? {} : { schema: { $ref: refToDefinition(responseModel) } };
  return {
    operationId,
    ...(consumes === undefined ? {} : { consumes }),
    ...(parameters.length === 0 ? {} : { parameters }),
    responses: { [code]: { description: 'OK', ...schema } },
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': gvk,
  };
}
