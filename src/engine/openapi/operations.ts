/**
 * Lists the operations of a resource by path, for the paths of both OpenAPI v2 and v3. kubectl reads them to see
 * whether a kind supports dryRun and fieldValidation, and `kubectl explain` to find the kind of a resource.
 */
import {
  capitalize,
  DELETE_OPTIONS,
  modelName,
  operationGroup,
  PATCH,
  SCALE,
  STATUS,
} from '#engine/openapi/model-names.ts';
import type { GroupVersionKind, Resource } from '#engine/registry/resource.ts';

export type Method = 'get' | 'put' | 'post' | 'delete' | 'patch';

interface QueryParameter {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'boolean';
}

export interface ApiOperation {
  readonly path: string;
  readonly pathParameters: readonly string[];
  readonly method: Method;
  readonly operationId: string;
  readonly action: 'list' | 'get' | 'post' | 'put' | 'patch' | 'delete' | 'deletecollection';
  readonly gvk: GroupVersionKind;
  readonly query: readonly QueryParameter[];
  /** Model of the body; undefined if there is none or it is not described. */
  readonly body?: string;
  readonly consumes?: readonly string[];
  /** Model of the response; undefined if it is not described. */
  readonly responseModel?: string;
  /** Status code of the usual success. */
  readonly code: '200' | '201';
}

const string = (...names: string[]) => names.map((name): QueryParameter => ({ name, type: 'string' }));
const integer = (...names: string[]) => names.map((name): QueryParameter => ({ name, type: 'integer' }));
const boolean = (...names: string[]) => names.map((name): QueryParameter => ({ name, type: 'boolean' }));

const SELECT = string('continue', 'fieldSelector', 'labelSelector', 'resourceVersion', 'resourceVersionMatch');
const LIST = [
  ...SELECT,
  ...integer('limit', 'timeoutSeconds'),
  ...boolean('allowWatchBookmarks', 'sendInitialEvents', 'watch'),
];
const WRITE = string('dryRun', 'fieldManager', 'fieldValidation');
const PATCH_QUERY = [...WRITE, ...boolean('force')];
const DELETE = [
  ...string('dryRun', 'propagationPolicy'),
  ...integer('gracePeriodSeconds'),
  ...boolean('orphanDependents'),
];
const DELETE_COLLECTION = [...DELETE, ...SELECT, ...integer('limit', 'timeoutSeconds')];

const PATCH_TYPES: readonly string[] = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/apply-patch+yaml',
];
const BUILT_IN_PATCH_TYPES: readonly string[] = [...PATCH_TYPES, 'application/strategic-merge-patch+json'];

/** The properties that all operations at one path share. */
interface Place {
  readonly path: string;
  readonly pathParameters: readonly string[];
  readonly gvk: GroupVersionKind;
  readonly model: string | undefined;
  readonly consumes: readonly string[];
  readonly idOf: (verb: string) => string;
}

export function operationsOf(resource: Resource): ApiOperation[] {
  const { group, version, kind, plural, namespaced } = resource;
  const gvk = { group, version, kind };
  const base = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  const collection = namespaced ? `${base}/namespaces/{namespace}/${plural}` : `${base}/${plural}`;
  const inNamespace = namespaced ? ['namespace'] : [];
  const scope = namespaced ? 'Namespaced' : '';
  const prefix = operationGroup(resource);
  const consumes = resource.builtIn ? BUILT_IN_PATCH_TYPES : PATCH_TYPES;

  const place = (suffix: string, model: string | undefined, at: GroupVersionKind, subresource = ''): Place => ({
    path: collection + suffix,
    pathParameters: suffix === '' ? inNamespace : [...inNamespace, 'name'],
    gvk: at,
    model,
    consumes,
    idOf: (verb) => `${verb}${prefix}${scope}${kind}${capitalize(subresource)}`,
  });

  const model = modelName(resource, kind);
  const listModel = modelName(resource, resource.listKind);
  const all = place('', model, gvk);
  const one = place('/{name}', model, gvk);
  const operations: ApiOperation[] = [];

  if (resource.verbs.includes('list')) {
    if (namespaced) {
      const operationId = `list${prefix}${kind}ForAllNamespaces`;
      operations.push({ ...list(all, listModel), path: `${base}/${plural}`, pathParameters: [], operationId });
    }
    operations.push(list(all, listModel));
  }
  if (resource.verbs.includes('create')) operations.push(post(all));
  if (resource.verbs.includes('deletecollection')) {
    const operationId = `delete${prefix}Collection${scope}${kind}`;
    operations.push({ ...remove(all), action: 'deletecollection', operationId, query: DELETE_COLLECTION });
  }
  operations.push(...objectOperations(one, resource.verbs));

  const written = ['get', 'update', 'patch'];
  if (resource.status) operations.push(...objectOperations(place('/{name}/status', model, gvk, 'status'), written));
  if (resource.scale !== undefined) {
    const scale = { group: 'autoscaling', version: 'v1', kind: 'Scale' };
    operations.push(...objectOperations(place('/{name}/scale', SCALE, scale, 'scale'), written));
  }
  for (const extra of resource.extraSubresources ?? []) {
    const at = { group: extra.group ?? group, version: extra.version ?? version, kind: extra.kind };
    // Kinds that exist only as the body of a subresource are not described.
    const described = extra.kind === kind && at.group === group && at.version === version ? model : undefined;
    const here = place(`/{name}/${extra.name}`, described, at, extra.name);
    operations.push(...objectOperations(here, extra.verbs));
    if (extra.verbs.includes('create')) operations.push(post(here));
  }
  return operations;
}

function objectOperations(at: Place, verbs: readonly string[]): ApiOperation[] {
  const operations: ApiOperation[] = [];
  if (verbs.includes('get'))
    operations.push(operation(at, 'get', 'get', 'read', { query: [], responseModel: at.model }));
  if (verbs.includes('update')) {
    const about = { query: WRITE, body: at.model, responseModel: at.model };
    operations.push(operation(at, 'put', 'put', 'replace', about));
  }
  if (verbs.includes('patch')) {
    const about = { query: PATCH_QUERY, body: PATCH, consumes: at.consumes, responseModel: at.model };
    operations.push(operation(at, 'patch', 'patch', 'patch', about));
  }
  if (verbs.includes('delete')) operations.push(remove(at));
  return operations;
}

function operation(
  { path, pathParameters, gvk, idOf }: Place,
  method: Method,
  action: ApiOperation['action'],
  idVerb: string,
  about: Pick<ApiOperation, 'query' | 'body' | 'consumes' | 'responseModel'>,
): ApiOperation {
  const code = method === 'post' ? '201' : '200';
  return { path, pathParameters, method, action, gvk, operationId: idOf(idVerb), code, ...about };
}

function list(at: Place, listModel: string): ApiOperation {
  return operation(at, 'get', 'list', 'list', { query: LIST, responseModel: listModel });
}

function post(at: Place): ApiOperation {
  return operation(at, 'post', 'post', 'create', { query: WRITE, body: at.model, responseModel: at.model });
}

function remove(at: Place): ApiOperation {
  return operation(at, 'delete', 'delete', 'delete', { query: DELETE, body: DELETE_OPTIONS, responseModel: STATUS });
}
