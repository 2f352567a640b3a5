/**
 * The whole API as one function: route, authorize, dispatch, and report every failure as a Status (or as plain text if
 * there is no API). Both the HTTPS listener and the in-process client call it, so nothing can bypass it.
 */
import { NAMESPACE_COLLECTION } from '#engine/admission/namespace-lifecycle.ts';
import type { Aggregation } from '#engine/aggregation/aggregation.ts';
import { auditRecord, type AuditSink, type RequestTrail } from '#engine/audit/audit-record.ts';
import { isAudited } from '#engine/audit/audited-requests.ts';
import { authorizationError, type Attributes, type ResourceRequestAttributes } from '#engine/auth/authorize.ts';
import { applyImpersonation } from '#engine/auth/impersonate.ts';
import type { EngineParts, Handler, SubresourceHandlers, Subresources } from '#engine/handlers/call.ts';
import { createObject } from '#engine/handlers/create.ts';
import { deleteCollection } from '#engine/handlers/delete-collection.ts';
import { deleteOne } from '#engine/handlers/delete.ts';
import { getObject } from '#engine/handlers/get.ts';
import { listObjects } from '#engine/handlers/list.ts';
import { patchObject } from '#engine/handlers/patch.ts';
import { getScale, patchScale, updateScale } from '#engine/handlers/scale.ts';
import { review } from '#engine/handlers/review.ts';
import { respondStatus } from '#engine/handlers/respond.ts';
import { updateObject } from '#engine/handlers/update.ts';
import { watchObjects } from '#engine/handlers/watch/watch.ts';
import type { EngineMetrics } from '#engine/dispatch/metrics.ts';
import { Pace } from '#engine/handlers/pace.ts';
import { RequestNotes } from '#engine/handlers/request-notes.ts';
import { assertTimeout } from '#engine/handlers/options.ts';
import { pageNotFound, type PathHandler } from '#engine/dispatch/paths.ts';
import type { Registry, Served } from '#engine/registry/registry.ts';
import type { Resource, ApiVerb } from '#engine/registry/resource.ts';
import type { ApiHandler, ApiRequest, ApiResponse, StreamResponse } from '#engine/request/request.ts';
import { parseApiRoute, verbOf, type ResourceRoute } from '#engine/request/route.ts';
import { ACCEPTED_TYPES, negotiateRepresentation } from '#engine/tables/negotiate-representation.ts';
import { ApiError, internalError, methodNotAllowed, notAcceptable } from '#kube/api-error.ts';
import type { Log } from '#lib/log.ts';

interface ApiParts extends EngineParts {
  readonly registry: Registry;
  readonly metrics: EngineMetrics;
  /** Handles everything that is not a resource: discovery, health, version, metrics. */
  readonly paths: PathHandler;
  /** Subresources of specific kinds: pods/log, serviceaccounts/token. */
  readonly subresources: Subresources;
  /** Groups and versions of aggregated API servers. */
  readonly aggregation: Aggregation;
  /** Undefined if there is no audit log. */
  readonly audit: AuditSink | undefined;
}

const HANDLERS: Record<ApiVerb, Handler> = {
  get: getObject,
  list: listObjects,
  watch: watchObjects,
  create: createObject,
  update: updateObject,
  patch: patchObject,
  delete: deleteOne,
  deletecollection: deleteCollection,
};

export function createApi(parts: ApiParts): ApiHandler {
  const { clock, metrics, audit, log } = parts;
  return (received) => {
    const receivedMs = clock.now();
    const start = clock.elapsed();
    let request = received;
    const route = parseApiRoute(request.path);
    const verb = route.type === 'path' ? pathVerb(request.method) : verbOf(request.method, route, request.query);
    const trail: RequestTrail = { decision: undefined, notes: undefined, error: undefined, isReview: false };
    const finish = (handled: ApiResponse): ApiResponse => {
      const response = withWarnings(handled, trail.notes?.warnings);
      const tookMs = clock.elapsed() - start;
      const shown = route.type === 'path' || verb === undefined ? request.method.toLowerCase() : verb;
      if (audit !== undefined && isAudited(shown, response.status, trail.isReview)) {
        audit(auditRecord({ received, request, route, verb: shown, response, trail, receivedMs, tookMs }));
      }
      const resource = route.type === 'resource' && isServed(parts, route) ? route.plural : '';
      if ('stream' in response) return verb === 'watch' ? countWatch(response, resource, metrics) : response;
      metrics.recordRequest(verb ?? OTHER_VERB, resource, response.status, tookMs / 1000);
      return response;
    };
    const failed = (error: unknown) => {
      if (error instanceof ApiError) trail.error = error;
      return finish(toErrorResponse(error, request, log));
    };
    try {
      request = applyImpersonation(received, parts.authorizer);
      const response =
        route.type === 'path'
          ? servePath(parts, request, trail)
          : serveResource(parts, request, { route, verb, trail });
      return response instanceof Promise ? response.then(finish, failed) : finish(response);
    } catch (error) {
      return failed(error);
    }
  };
}

function isServed({ registry }: ApiParts, { group, version, plural }: ResourceRoute): boolean {
  return registry.find(group, version, plural) !== undefined;
}

/** Bounds the labels of metrics, because HTTP/2 clients can invent methods. */
const OTHER_VERB = 'other';

function pathVerb(method: string): string {
  return method === 'GET' ? 'get' : OTHER_VERB;
}

function servePath(parts: ApiParts, request: ApiRequest, trail: RequestTrail): Promise<ApiResponse> {
  authorize(parts, request, { verb: request.method.toLowerCase(), path: request.path }, trail);
  return parts.paths(request);
}

interface RoutedRequest {
  readonly route: ResourceRoute;
  readonly verb: string | undefined;
  readonly trail: RequestTrail;
}

function serveResource(
  parts: ApiParts,
  request: ApiRequest,
  { route, verb, trail }: RoutedRequest,
): ApiResponse | Promise<ApiResponse> {
  const { group, version, plural, subresource, namespace } = route;
  // A user who may read one object may list it by name, as in Kubernetes; the query never names the object of a write.
  const listing = verb === 'list' || verb === 'watch';
  const name = listing && route.name === '' ? namedBySelector(request.query) : route.name;
  const attributes: Attributes = {
    verb: verb ?? request.method.toLowerCase(),
    group,
    version,
    resource: plural,
    subresource,
    // A namespace is authorized within itself, so that its admins can read it.
    namespace: group === '' && plural === 'namespaces' ? route.name : namespace,
    name,
    ...(listing && request.query.size > 0 ? selectorsOf(request.query) : {}),
  };
  authorize(parts, request, attributes, trail);
  const remote = parts.aggregation.find(group, version);
  if (remote !== undefined) return remote(request);
  const served = parts.registry.find(group, version, plural);
  if (served === undefined || route.hasMoreSegments || !matchesScope(served, route)) return pageNotFound();
  const handler = handlerOf(parts, served, route, verb);
  if (handler === undefined) return pageNotFound();
  assertTimeout(request.query);
  // A log is always text, whatever the client accepts.
  const representation = negotiateRepresentation(subresource === 'log' ? '' : request.accept);
  if (representation === 'not-acceptable') throw notAcceptable(ACCEPTED_TYPES);
  const { store, clock, log, admission, authorizer, tokens, turns } = parts;
  const reads = verb === 'get' || verb === 'list' || verb === 'watch';
  const notes = reads ? NO_NOTES : (trail.notes = new RequestNotes());
  const pace = new Pace(turns, request.impersonator ?? request.user);
  const own = { store, clock, log, admission, authorizer, tokens, turns };
  const call = { ...own, request, route, served, representation, notes, pace };
  if (reads) return withDeprecation(served, handler(call));
  trail.isReview = served.resource.isReview === true;
  if (served.resource.deprecationWarning !== undefined) notes.warn(served.resource.deprecationWarning);
  return handler(call);
}

/** Reads have no admission, so there are no notes. */
const NO_NOTES = new RequestNotes();

/** Adds the noted warnings to the response, including refusals. */
function withWarnings(response: ApiResponse, warnings: readonly string[] | undefined): ApiResponse {
  return warnings === undefined ? response : { ...response, warnings: [...(response.warnings ?? []), ...warnings] };
}

function selectorsOf(query: URLSearchParams): Pick<ResourceRequestAttributes, 'labelSelector' | 'fieldSelector'> {
  return { labelSelector: query.get('labelSelector') ?? '', fieldSelector: query.get('fieldSelector') ?? '' };
}

const ONE_NAME = /^metadata\.name=([^,=!]+)$/;

function namedBySelector(query: URLSearchParams): string {
  const selector = query.size === 0 ? null : query.get('fieldSelector');
  return selector === null ? '' : (ONE_NAME.exec(selector)?.[1] ?? '');
}

function authorize({ authorizer }: ApiParts, request: ApiRequest, attributes: Attributes, trail: RequestTrail): void {
  const decision = (trail.decision = authorizer.authorize(request.user, attributes));
  if (!decision.allowed) throw authorizationError(request.user, attributes, decision.reason);
}

/** Checks that the path has a namespace exactly if the kind is namespaced. */
function matchesScope({ resource }: Served, { namespace, name }: ResourceRoute): boolean {
  if (!resource.namespaced) return namespace === '';
  return namespace !== '' || name === '';
}

const WRITES_IN_COLLECTION: ReadonlySet<string> = new Set(['create', 'deletecollection']);

/** The handlers of each subresource; the kind determines which it has. */
const SUBRESOURCES: Record<string, { served(resource: Resource): boolean; handlers: SubresourceHandlers }> = {
  status: { served: ({ status }) => status, handlers: { get: getObject, update: updateObject, patch: patchObject } },
  scale: {
    served: ({ scale }) => scale !== undefined,
    handlers: { get: getScale, update: updateScale, patch: patchScale },
  },
  finalize: {
    served: ({ collection }) => collection === NAMESPACE_COLLECTION,
    handlers: { update: updateObject, patch: patchObject },
  },
};

function ownSubresource(resource: Resource, subresource: string): SubresourceHandlers | undefined {
  const known = Object.hasOwn(SUBRESOURCES, subresource) ? SUBRESOURCES[subresource]! : undefined;
  return known?.served(resource) ? known.handlers : undefined;
}

/** Returns undefined if the subresource does not exist. */
function handlerOf(
  { subresources }: ApiParts,
  { resource }: Served,
  { subresource, name, namespace }: ResourceRoute,
  verb: string | undefined,
): Handler | undefined {
  if (verb === undefined) throw methodNotAllowed();
  if (subresource !== '') {
    const handlers = subresources[`${resource.collection}/${subresource}`] ?? ownSubresource(resource, subresource);
    const handler = handlers?.[verb];
    if (handlers !== undefined && handler === undefined) throw methodNotAllowed();
    return handler;
  }
  const onItem = name !== '';
  const misplaced = verb === 'create' ? onItem : (verb === 'update' || verb === 'patch') && !onItem;
  // Reads may span all namespaces; writes may not.
  const noNamespace = WRITES_IN_COLLECTION.has(verb) && resource.namespaced && namespace === '';
  if (misplaced || noNamespace || !resource.verbs.includes(verb as ApiVerb)) throw methodNotAllowed();
  if (resource.isReview === true) return review;
  return HANDLERS[verb as ApiVerb];
}

function withDeprecation(
  { resource }: Served,
  response: ApiResponse | Promise<ApiResponse>,
): ApiResponse | Promise<ApiResponse> {
  const warning = resource.deprecationWarning;
  if (warning === undefined) return response;
  return Promise.resolve(response).then((done) => ({ ...done, warnings: [...(done.warnings ?? []), warning] }));
}

/** Counts a watch while it is open. */
function countWatch(response: StreamResponse, resource: string, metrics: EngineMetrics): StreamResponse {
  return {
    ...response,
    stream(sink) {
      const stop = response.stream(sink);
      metrics.recordWatchStart(resource);
      let open = true;
      return () => {
        if (open) metrics.recordWatchEnd(resource);
        open = false;
        stop();
      };
    },
  };
}

/** ApiErrors are expected refusals; any other error is a bug and is logged here, once. */
function toErrorResponse(error: unknown, request: ApiRequest, log: Log): ApiResponse {
  if (!(error instanceof ApiError)) {
    log.error({ err: error, method: request.method, path: request.path }, 'Request failed');
    return toErrorResponse(internalError('the server encountered an unexpected error; see its log'), request, log);
  }
  if (error.code >= 500 && error.cause !== undefined) {
    log.warn({ method: request.method, path: request.path, reason: error.message }, 'Request refused');
  }
  const response = respondStatus(error.toStatus());
  const retry = error.details?.retryAfterSeconds;
  return retry === undefined ? response : { ...response, headers: { 'retry-after': String(retry) } };
}
