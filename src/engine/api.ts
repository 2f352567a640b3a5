/**
 * The whole API as one function: route, authorize, dispatch, and every failure as a Status (only where there is no API
 * at all, as plain text). The HTTPS listener and the in-process client both call it: nobody has a way around it.
 */
import { NAMESPACE_COLLECTION } from '#engine/admission/namespace-lifecycle.ts';
import type { Aggregation } from '#engine/aggregation/aggregation.ts';
import { AuditNotes } from '#engine/audit/audit-notes.ts';
import { auditRecord, type AuditSink, type Trail } from '#engine/audit/audit-record.ts';
import { isAudited } from '#engine/audit/what-is-audited.ts';
import { refusal, type Attributes } from '#engine/auth/authorize.ts';
import { applyImpersonation } from '#engine/auth/impersonate.ts';
import type { EngineParts } from '#engine/handlers/call.ts';
import { create } from '#engine/handlers/create.ts';
import { deleteCollection } from '#engine/handlers/delete-collection.ts';
import { deleteOne } from '#engine/handlers/delete.ts';
import { get } from '#engine/handlers/get.ts';
import { list } from '#engine/handlers/list.ts';
import { patch } from '#engine/handlers/patch.ts';
import { getScale, patchScale, updateScale } from '#engine/handlers/scale.ts';
import type { Handler, SubresourceHandlers, Subresources } from '#engine/handlers/subresource.ts';
import { review } from '#engine/handlers/review.ts';
import { respondStatus } from '#engine/handlers/respond.ts';
import { update } from '#engine/handlers/update.ts';
import { watch } from '#engine/handlers/watch.ts';
import type { Metrics } from '#engine/metrics.ts';
import { RequestNotes } from '#engine/notes.ts';
import { assertTimeout, isWatch } from '#engine/options.ts';
import { pageNotFound, type PathHandler } from '#engine/paths.ts';
import type { Registry, Served } from '#engine/registry/registry.ts';
import type { Resource, Verb } from '#engine/registry/resource.ts';
import type { ApiHandler, ApiRequest, ApiResponse, StreamResponse } from '#engine/request.ts';
import { parseRoute, verbOf, type ResourceRoute } from '#engine/route.ts';
import { ACCEPTED_TYPES, negotiateRepresentation } from '#engine/tables/negotiate-representation.ts';
import { ApiError, internalError, methodNotAllowed, notAcceptable } from '#kube/api-error.ts';
import type { Log } from '#lib/log.ts';

export interface ApiParts extends EngineParts {
  readonly registry: Registry;
  readonly metrics: Metrics;
  /** Everything that is not a resource: discovery, health, version, metrics. */
  readonly paths: PathHandler;
  /** Those that only some kinds have: pods/log, serviceaccounts/token. */
  readonly subresources: Subresources;
  /** Groups and versions that others serve. */
  readonly aggregation: Aggregation;
  /** undefined = nobody keeps records. */
  readonly audit: AuditSink | undefined;
}

const HANDLERS: Record<Verb, Handler> = {
  get,
  list,
  watch,
  create,
  update,
  patch,
  delete: deleteOne,
  deletecollection: deleteCollection,
};

export function createApi(parts: ApiParts): ApiHandler {
  const { clock, metrics, audit, log } = parts;
  return (asked) => {
    const receivedMs = clock.now();
    const start = clock.elapsed();
    let request = asked;
    const route = parseRoute(request.path);
    const verb =
      route.type === 'path' ? pathVerb(request.method) : verbOf(request.method, route, isWatch(request.query));
    const trail: Trail = { decision: undefined, notes: undefined, error: undefined, isQuestion: false };
    const answered = (answer: ApiResponse): ApiResponse => {
      const response = warned(answer, trail.notes?.warnings);
      const tookMs = clock.elapsed() - start;
      const shown = route.type === 'path' || verb === undefined ? request.method.toLowerCase() : verb;
      if (audit !== undefined && isAudited(shown, response.status, trail.isQuestion)) {
        audit(auditRecord({ asked, request, route, verb: shown, response, trail, receivedMs, tookMs }));
      }
      const resource = route.type === 'resource' && isServed(parts, route) ? route.plural : '';
      if ('stream' in response) return verb === 'watch' ? counted(response, resource, metrics) : response;
      metrics.requestDone(verb ?? OTHER_VERB, resource, response.status, tookMs / 1000);
      return response;
    };
    const failed = (error: unknown) => {
      if (error instanceof ApiError) trail.error = error;
      return answered(failure(error, request, log));
    };
    try {
      request = applyImpersonation(asked, parts.authorizer);
      const response =
        route.type === 'path'
          ? servePath(parts, request, trail)
          : serveResource(parts, request, { route, verb, trail });
      return response instanceof Promise ? response.then(answered, failed) : answered(response);
    } catch (error) {
      return failed(error);
    }
  };
}

function isServed({ registry }: ApiParts, { group, version, plural }: ResourceRoute): boolean {
  return registry.find(group, version, plural) !== undefined;
}

/** Labels of metrics are bounded, and HTTP/2 lets a client invent methods. */
const OTHER_VERB = 'other';

function pathVerb(method: string): string {
  return method === 'GET' ? 'get' : OTHER_VERB;
}

function servePath(parts: ApiParts, request: ApiRequest, trail: Trail): Promise<ApiResponse> {
  authorize(parts, request, { verb: request.method.toLowerCase(), path: request.path }, trail);
  return parts.paths(request);
}

interface RoutedRequest {
  readonly route: ResourceRoute;
  readonly verb: string | undefined;
  readonly trail: Trail;
}

function serveResource(
  parts: ApiParts,
  request: ApiRequest,
  { route, verb, trail }: RoutedRequest,
): ApiResponse | Promise<ApiResponse> {
  const { group, version, plural, subresource, namespace } = route;
  // Who may see one object only may ask for a list of it, as in Kubernetes; a write is never named by its query.
  const listing = verb === 'list' || verb === 'watch';
  const name = listing && route.name === '' ? namedBySelector(request.query) : route.name;
  const attributes: Attributes = {
    verb: verb ?? request.method.toLowerCase(),
    group,
    version,
    resource: plural,
    subresource,
    // A namespace is judged in itself, so that whoever rules in it may look at it.
    namespace: group === '' && plural === 'namespaces' ? route.name : namespace,
    name,
  };
  authorize(parts, request, attributes, trail);
  const remote = parts.aggregation.find(group, version);
  if (remote !== undefined) return remote(request);
  const served = parts.registry.find(group, version, plural);
  if (served === undefined || route.deeper || !fits(served, route)) return pageNotFound();
  const handler = handlerOf(parts, served, route, verb);
  if (handler === undefined) return pageNotFound();
  assertTimeout(request.query);
  // A log is text, whatever else a client would take.
  const representation = negotiateRepresentation(subresource === 'log' ? '' : request.accept);
  if (representation === 'not-acceptable') throw notAcceptable(ACCEPTED_TYPES);
  const { store, clock, log, admission, authorizer, tokens } = parts;
  const reads = verb === 'get' || verb === 'list' || verb === 'watch';
  const notes = reads ? SILENT : (trail.notes = new AuditNotes());
  const call = { store, clock, log, admission, authorizer, tokens, request, route, served, representation, notes };
  if (reads) return withDeprecation(served, handler(call));
  trail.isQuestion = served.resource.asked === true;
  if (served.resource.deprecationWarning !== undefined) notes.warn(served.resource.deprecationWarning);
  return handler(call);
}

/** Reads are not admitted, so nobody notes anything. */
const SILENT = new RequestNotes();

/** What was noted goes out with the answer, also with a refusal. */
function warned(response: ApiResponse, warnings: readonly string[] | undefined): ApiResponse {
  return warnings === undefined ? response : { ...response, warnings: [...(response.warnings ?? []), ...warnings] };
}

const ONE_NAME = /^metadata\.name=([^,=!]+)$/;

function namedBySelector(query: URLSearchParams): string {
  const selector = query.size === 0 ? null : query.get('fieldSelector');
  return selector === null ? '' : (ONE_NAME.exec(selector)?.[1] ?? '');
}

function authorize({ authorizer }: ApiParts, request: ApiRequest, attributes: Attributes, trail: Trail): void {
  const decision = (trail.decision = authorizer.authorize(request.user, attributes));
  if (!decision.allowed) throw refusal(request.user, attributes, decision.reason);
}

/** Items of namespaced kinds have a namespace on their path, others have none. */
function fits({ resource }: Served, { namespace, name }: ResourceRoute): boolean {
  if (!resource.namespaced) return namespace === '';
  return namespace !== '' || name === '';
}

const WRITES_IN_COLLECTION: ReadonlySet<string> = new Set(['create', 'deletecollection']);

/** What each subresource answers to; who has which is asked of the kind. */
const SUBRESOURCES: Record<string, { served(resource: Resource): boolean; handlers: SubresourceHandlers }> = {
  status: { served: ({ status }) => status, handlers: { get, update, patch } },
  scale: {
    served: ({ scale }) => scale !== undefined,
    handlers: { get: getScale, update: updateScale, patch: patchScale },
  },
  finalize: { served: ({ collection }) => collection === NAMESPACE_COLLECTION, handlers: { update, patch } },
};

function ownSubresource(resource: Resource, subresource: string): SubresourceHandlers | undefined {
  const known = Object.hasOwn(SUBRESOURCES, subresource) ? SUBRESOURCES[subresource]! : undefined;
  return known?.served(resource) ? known.handlers : undefined;
}

/** undefined = there is no such subresource. */
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
  // Across namespaces one may look, not write.
  const noNamespace = WRITES_IN_COLLECTION.has(verb) && resource.namespaced && namespace === '';
  if (misplaced || noNamespace || !resource.verbs.includes(verb as Verb)) throw methodNotAllowed();
  if (resource.asked === true) return review;
  return HANDLERS[verb as Verb];
}

function withDeprecation(
  { resource }: Served,
  response: ApiResponse | Promise<ApiResponse>,
): ApiResponse | Promise<ApiResponse> {
  const warning = resource.deprecationWarning;
  if (warning === undefined) return response;
  return Promise.resolve(response).then((done) => ({ ...done, warnings: [...(done.warnings ?? []), warning] }));
}

/** A watch counts while it is open. */
function counted(response: StreamResponse, resource: string, metrics: Metrics): StreamResponse {
  return {
    ...response,
    stream(sink) {
      const stop = response.stream(sink);
      metrics.watchStarted(resource);
      let open = true;
      return () => {
        if (open) metrics.watchEnded(resource);
        open = false;
        stop();
      };
    },
  };
}

/** Expected refusals are ApiErrors; anything else is our own mistake and is logged here, once. */
function failure(error: unknown, request: ApiRequest, log: Log): ApiResponse {
  if (!(error instanceof ApiError)) {
    log.error({ err: error, method: request.method, path: request.path }, 'request failed');
    return failure(internalError('the server has made a mistake; its log says more'), request, log);
  }
  if (error.code >= 500 && error.cause !== undefined) {
    log.warn({ method: request.method, path: request.path, reason: error.message }, 'request refused');
  }
  const response = respondStatus(error.toStatus());
  const retry = error.details?.retryAfterSeconds;
  return retry === undefined ? response : { ...response, headers: { 'retry-after': String(retry) } };
}
