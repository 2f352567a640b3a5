/**
 * Merges the OpenAPI v2 documents of aggregated API servers into ours: the paths of one group and version, and the
 * definitions that they reference. Only keywords that our own documents use are taken over; no client needs the others.
 * Pure.
 */
import type { DocumentSchema } from '#engine/openapi/shared-schemas.ts';
import type { SwaggerDocument, SwaggerOperation, SwaggerParameter, SwaggerPathItem } from '#engine/openapi/v2.ts';
import { refToDefinition } from '#engine/openapi/v2-schema.ts';
import { deepEqual } from '#kube/deep.ts';
import { isRecord } from '#kube/meta.ts';

type RemoteV2 = Pick<SwaggerDocument, 'paths' | 'definitions'>;

/** The OpenAPI documents of one group and version of an aggregated API server. */
export interface RemoteOpenApi {
  readonly group: string;
  readonly version: string;
  /** The hash of the OpenAPI v3 document; undefined if there is none. */
  readonly openApiV3Hash: string | undefined;
  /** The paths of the version, and the definitions that they reference. */
  readonly openApiV2: RemoteV2 | undefined;
}

const METHODS = ['get', 'put', 'post', 'delete', 'patch'] as const;
const REF = refToDefinition('');
const MAX_RENAMES = 100;

/** Extracts the part below `root` (`/apis/<group>/<version>`), or undefined if the document has none. */
export function takeRemoteV2(document: unknown, root: string): RemoteV2 | undefined {
  if (!isRecord(document) || !isRecord(document['paths'])) return undefined;
  const paths: Record<string, SwaggerPathItem> = Object.create(null);
  for (const [path, item] of Object.entries(document['paths'])) {
    if ((path === root || path.startsWith(`${root}/`)) && isRecord(item)) paths[path] = pathItem(item);
  }
  if (Object.keys(paths).length === 0) return undefined;
  const known = isRecord(document['definitions']) ? document['definitions'] : {};
  const definitions: Record<string, DocumentSchema> = Object.create(null);
  const wanted = new Set<string>();
  for (const item of Object.values(paths)) collectRefs(item, wanted);
  // The loop also visits names that are added while it runs.
  for (const name of wanted) {
    const definition = schemaOf(Object.hasOwn(known, name) ? known[name] : {});
    definitions[name] = definition;
    collectRefs(definition, wanted);
  }
  return { paths, definitions };
}

/** Merges remote documents into our own. Different definitions of the same name get a suffix, as in kube-aggregator. */
export function mergeRemoteV2(own: SwaggerDocument, remotes: readonly RemoteV2[]): SwaggerDocument {
  if (remotes.length === 0) return own;
  const paths: SwaggerDocument['paths'] = Object.assign(Object.create(null), own.paths);
  const definitions: SwaggerDocument['definitions'] = Object.assign(Object.create(null), own.definitions);
  for (const remote of remotes) {
    const renamed = new Map<string, string>();
    for (const [name, definition] of Object.entries(remote.definitions)) {
      const free = freeName(name, definition, definitions);
      if (free !== name) renamed.set(REF + name, REF + free);
    }
    for (const [name, definition] of Object.entries(remote.definitions)) {
      const target = renamed.get(REF + name)?.slice(REF.length) ?? name;
      definitions[target] ??= withRenamedRefs(definition, renamed);
    }
    for (const [path, item] of Object.entries(remote.paths)) paths[path] ??= withRenamedRefs(item, renamed);
  }
  return { ...own, paths, definitions };
}

function freeName(name: string, definition: DocumentSchema, taken: SwaggerDocument['definitions']): string {
  for (let i = 1; i <= MAX_RENAMES; i++) {
    const candidate = i === 1 ? name : `${name}_v${i}`;
    const present = taken[candidate];
    if (present === undefined || deepEqual(present, definition)) return candidate;
  }
  return name;
}

function pathItem(value: Record<string, unknown>): SwaggerPathItem {
  const item: SwaggerPathItem = {};
  const parameters = parametersOf(value['parameters']);
  if (parameters.length > 0) item.parameters = parameters;
  for (const method of METHODS) {
    const operation = value[method];
    if (isRecord(operation)) item[method] = operationOf(operation);
  }
  return item;
}

function operationOf(value: Record<string, unknown>): SwaggerOperation {
  const parameters = parametersOf(value['parameters']);
  const responses: SwaggerOperation['responses'] = Object.create(null);
  for (const [code, response] of Object.entries(isRecord(value['responses']) ? value['responses'] : {})) {
    const { description, schema } = isRecord(response) ? response : {};
    responses[code] = { description: textOf(description), ...(isRecord(schema) ? { schema: schemaOf(schema) } : {}) };
  }
  const consumes = textsOf(value['consumes']);
  return {
    operationId: textOf(value['operationId']),
    ...(consumes.length === 0 ? {} : { consumes }),
    ...(parameters.length === 0 ? {} : { parameters }),
    responses,
    ...(extensionsOf(value) as Pick<SwaggerOperation, 'x-kubernetes-action' | 'x-kubernetes-group-version-kind'>),
  };
}

function parametersOf(value: unknown): SwaggerParameter[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isRecord).flatMap((parameter): SwaggerParameter[] => {
    const name = textOf(parameter['name']);
    const type = textOf(parameter['type']) || 'string';
    if (name === '') return [];
    switch (parameter['in']) {
      case 'query':
        return [{ name, in: 'query', type }];
      case 'path':
        return [{ name, in: 'path', type, required: true }];
      case 'body':
        return [{ name, in: 'body', schema: schemaOf(parameter['schema']) }];
      default:
        return [];
    }
  });
}

function schemaOf(value: unknown): DocumentSchema {
  if (!isRecord(value)) return {};
  const schema: Record<string, unknown> = extensionsOf(value);
  for (const key of ['$ref', 'type', 'format', 'description'] as const) {
    if (typeof value[key] === 'string') schema[key] = value[key];
  }
  const required = textsOf(value['required']);
  if (required.length > 0) schema['required'] = required;
  if (isRecord(value['items'])) schema['items'] = schemaOf(value['items']);
  if (isRecord(value['additionalProperties'])) {
    schema['additionalProperties'] = schemaOf(value['additionalProperties']);
  }
  if (isRecord(value['properties'])) {
    const properties: Record<string, DocumentSchema> = Object.create(null);
    for (const [name, child] of Object.entries(value['properties'])) properties[name] = schemaOf(child);
    schema['properties'] = properties;
  }
  return schema;
}

function extensionsOf(value: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([name]) => name.startsWith('x-')));
}

function collectRefs(value: unknown, found: Set<string>): void {
  if (typeof value !== 'object' || value === null) return;
  if (isRecord(value) && typeof value['$ref'] === 'string' && value['$ref'].startsWith(REF)) {
    found.add(value['$ref'].slice(REF.length));
  }
  for (const child of Object.values(value)) collectRefs(child, found);
}

function withRenamedRefs<T>(value: T, renamed: ReadonlyMap<string, string>): T {
  if (renamed.size === 0 || typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: unknown) => withRenamedRefs(item, renamed)) as T;
  const copy: Record<string, unknown> = Object.create(null);
  for (const [key, child] of Object.entries(value)) {
    copy[key] =
      key === '$ref' && typeof child === 'string' ? (renamed.get(child) ?? child) : withRenamedRefs(child, renamed);
  }
  return copy as T;
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : '');
const textsOf = (value: unknown) => (Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []);
