/**
 * Serves subresources.kubevirt.io, the verbs of VMs and instances, as an aggregated API. The API server has authorized
 * each request; api/verbs/decide-verb.ts decides whether a verb is possible in the current state; the node performs what concerns the
 * guest.
 */
import { isProtected } from '#api/protection/delete-protection.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { getIfExists } from '#client/get-if-exists.ts';
import { startAttempt } from '#client/abort.ts';
import type { Client } from '#client/client.ts';
import { ApiError, badRequest, internalError, methodNotAllowed, timeout, tooLarge } from '#kube/api-error.ts';
import type { Clock } from '#lib/clock.ts';
import { relayUpgrade } from '#lib/https/relay-upgrade.ts';
import type { Log } from '#lib/log.ts';
import { buildPathSuffix, isGuestRead, parseSubresourcePath, type SubresourceRoute } from '#subresources/route.ts';
import { issueAgentCertificate, type AgentSigner } from '#subresources/agent-certificate.ts';
import { performVerb, findNodeRequest, type VerbRequest } from '#subresources/perform-verb.ts';
import { routeDiskRequest } from '#subresources/disk-request.ts';
import { expandVm } from '#subresources/expand.ts';
import { groupDocument, resourcesDocument, versionDocument } from '#subresources/discovery.ts';
import {
  emptyResponse,
  jsonResponse,
  type SubresourceBytes,
  type SubresourceResponse,
  type SubresourceHandler,
  type SubresourceRequest,
} from '#subresources/http-types.ts';
import type { NodeConnections, NodeRequest } from '#subresources/node-connections.ts';
import { readOptions } from '#subresources/read-options.ts';
import { routeUploadRequest } from '#subresources/upload-request.ts';
import { requireVmUpdate } from '#subresources/vm-update-right.ts';
import { errorMessage } from '#lib/error-message.ts';
import { isStateVerb, RELEASE_DISK_VERB } from '#api/verbs/verb.ts';

/** The request timeout of kube-apiserver. A stream only has to begin within it. */
const VERB_TIMEOUT_MS = 60_000;
const MAX_BODY_BYTES = 64 * 1024;
/** Large enough for a PNG of noise on the largest screen that QEMU supports. */
const MAX_SCREENSHOT_BYTES = 64 * 1024 * 1024;
/** The maximum size of a response of the guest agent. */
const MAX_GUEST_BYTES = 2 * 1024 * 1024;

interface SubresourcesParts {
  /** Reads VMs, instances, claims and pods, patches VMs, instances and claims, creates migrations, deletes pods. */
  readonly client: Client;
  readonly nodes: NodeConnections;
  /** Signs the certificates of node agents; undefined if they get them elsewhere. */
  readonly agentSigner?: AgentSigner | undefined;
  readonly log: Log;
  readonly clock: Clock;
}

/** Returns the handler, which never rejects: errors become responses. */
export function createSubresourcesApi(parts: SubresourcesParts): SubresourceHandler {
  return async (request) => {
    try {
      return await serve(parts, request, parseSubresourcePath(request.path));
    } catch (error) {
      return errorResponse(parts, request, error);
    }
  };
}

async function serve(
  parts: SubresourcesParts,
  request: SubresourceRequest,
  route: SubresourceRoute,
): Promise<SubresourceResponse> {
  switch (route.kind) {
    case 'group':
      return serveDocument(request, groupDocument());
    case 'resources':
      return serveDocument(request, resourcesDocument(route.version));
    case 'version':
      return serveDocument(request, versionDocument());
    case 'healthz':
      return serveDocument(request, { apiserver: { connectivity: 'ok' } });
    case 'verb':
      return await serveVerb(parts, request, route);
    case 'disk':
      return await serveDisk(parts, request, route);
    case 'agent-certificate':
      return await issueAgentCertificate(parts.agentSigner, request);
    case 'upload':
      return await serveUpload(parts, request, route);
    case 'expand':
      return await expandVm(parts, request, route);
    case 'unimplemented':
      throw new ApiError(501, 'NotImplemented', `${route.what} is not supported yet`);
    case 'unsupported':
      throw new ApiError(501, 'NotImplemented', route.why);
    case 'invalid':
      throw badRequest(route.why);
    case 'unknown':
      throw new ApiError(404, 'NotFound', 'the server could not find the requested resource', { details: {} });
  }
}

function serveDocument({ method }: SubresourceRequest, value: unknown): SubresourceBytes {
  if (method !== 'GET' && method !== 'HEAD') throw methodNotAllowed();
  return jsonResponse(200, value);
}

async function serveVerb(
  parts: SubresourcesParts,
  request: SubresourceRequest,
  { resource, verb, method, namespace, name, forward }: Extract<SubresourceRoute, { kind: 'verb' }>,
): Promise<SubresourceResponse> {
  if (request.method !== method) throw methodNotAllowed();
  const text = method === 'GET' ? '' : await readBodyText(request);
  const options = readOptions(verb, text, request.query);
  const below = buildPathSuffix(verb, request.query, forward);
  const error = () => timeout(`${verb} of "${name}" took too long`);
  const attempt = startAttempt(parts.clock, { timeoutMs: VERB_TIMEOUT_MS, error, signal: request.signal });
  const user = request.user.name;
  const verbRequest: VerbRequest = {
    resource,
    verb: verb,
    namespace,
    name,
    options,
    user,
    pathSuffix: below,
    signal: attempt.signal,
  };
  try {
    if (isStateVerb(verb) || verb === RELEASE_DISK_VERB || (await detachesProtected(parts, verbRequest))) {
      await requireVmUpdate(parts.client, { user: request.user, signal: attempt.signal }, { namespace, name });
    }
    if (method === 'PUT') return emptyResponse(await performVerb(parts, verbRequest));
    if (isGuestRead(verb)) return await serveGuestRead(parts, verbRequest);
    return verb === 'vnc/screenshot'
      ? await serveScreenshot(parts, verbRequest)
      : await serveStream(parts, request, verbRequest);
  } finally {
    attempt.release();
  }
}

/** Reports whether the verb detaches a disk from a protected VM. Such a disk would be lost with fewer rights otherwise. */
async function detachesProtected({ client }: SubresourcesParts, request: VerbRequest): Promise<boolean> {
  const { resource, verb, namespace, name, signal } = request;
  if (verb !== 'removevolume' || resource !== VIRTUAL_MACHINES.plural) return false;
  const vm = await getIfExists(client, VIRTUAL_MACHINES, { namespace, name }, { signal });
  return vm !== undefined && isProtected(vm);
}

/** Serves information from the guest agent, as the node returns it. */
async function serveGuestRead(parts: SubresourcesParts, request: VerbRequest): Promise<SubresourceBytes> {
  const body = await parts.nodes.get({ ...(await findNodeRequest(parts, request)), maxAnswerBytes: MAX_GUEST_BYTES });
  return { status: 200, contentType: 'application/json', body };
}

async function serveDisk(
  parts: SubresourcesParts,
  request: SubresourceRequest,
  { verb, namespace, name }: Extract<SubresourceRoute, { kind: 'disk' }>,
): Promise<SubresourceResponse> {
  if (request.method !== 'GET') throw methodNotAllowed();
  expectUpgrade(request, verb);
  const error = () => timeout(`${verb} of "${name}" took too long`);
  const attempt = startAttempt(parts.clock, { timeoutMs: VERB_TIMEOUT_MS, error, signal: request.signal });
  const volume = request.query.get('volume') ?? '';
  try {
    const target = await routeDiskRequest(parts, { verb, namespace, name, volume, signal: attempt.signal });
    return await relayToNode(parts, request, target);
  } finally {
    attempt.release();
  }
}

async function serveUpload(
  parts: SubresourcesParts,
  request: SubresourceRequest,
  { namespace, claim }: Extract<SubresourceRoute, { kind: 'upload' }>,
): Promise<SubresourceResponse> {
  if (request.method !== 'GET') throw methodNotAllowed();
  expectUpgrade(request, 'upload');
  const error = () => timeout(`upload to "${claim}" took too long`);
  const attempt = startAttempt(parts.clock, { timeoutMs: VERB_TIMEOUT_MS, error, signal: request.signal });
  try {
    return await relayToNode(
      parts,
      request,
      await routeUploadRequest(parts, { namespace, claim, signal: attempt.signal }),
    );
  } finally {
    attempt.release();
  }
}

async function readBodyText(request: SubresourceRequest): Promise<string> {
  const body = await request.body();
  if (body.length > MAX_BODY_BYTES) throw tooLarge(`the body is larger than ${MAX_BODY_BYTES} bytes`);
  return body.toString('utf8');
}

const WEBSOCKET_HEADERS = [
  'sec-websocket-key',
  'sec-websocket-version',
  'sec-websocket-protocol',
  'sec-websocket-extensions',
];

/** Serves a WebSocket to the node; client and node do the handshake. */
async function serveStream(
  parts: SubresourcesParts,
  request: SubresourceRequest,
  verbRequest: VerbRequest,
): Promise<SubresourceResponse> {
  const target = await findNodeRequest(parts, verbRequest);
  expectUpgrade(request, verbRequest.verb);
  return await relayToNode(parts, request, target);
}

async function serveScreenshot(parts: SubresourcesParts, request: VerbRequest): Promise<SubresourceBytes> {
  const target = await findNodeRequest(parts, request);
  const body = await parts.nodes.get({ ...target, maxAnswerBytes: MAX_SCREENSHOT_BYTES });
  return { status: 200, contentType: 'image/png', body };
}

function expectUpgrade({ upgrade }: SubresourceRequest, what: string): void {
  if (upgrade?.toLowerCase() === 'websocket') return;
  throw badRequest(`${what} requires a WebSocket; the request has no upgrade to websocket`);
}

async function relayToNode(
  { nodes }: SubresourcesParts,
  request: SubresourceRequest,
  target: NodeRequest,
): Promise<SubresourceResponse> {
  const headers: Record<string, string> = { Connection: 'Upgrade', Upgrade: 'websocket' };
  for (const name of WEBSOCKET_HEADERS) {
    const value = request.header?.(name);
    if (value !== undefined) headers[name] = value;
  }
  return relayUpgrade(await nodes.upgrade(target, headers));
}

function errorResponse(
  { log }: SubresourcesParts,
  { method, path, signal }: SubresourceRequest,
  error: unknown,
): SubresourceBytes {
  const apiError = error instanceof ApiError ? error : internalError(errorMessage(error));
  // A client that ends early, such as an interrupted port-forward, is not a fault of this server.
  if (signal.aborted) log.debug({ method, path, reason: apiError.message }, 'The client has closed the request');
  else if (apiError.code === 500) log.warn({ err: error, method, path }, 'Cannot serve a subresource');
  // A state that other objects report, such as a node that is not ready or a claim that is not bound.
  else if (apiError.code > 501) log.info({ reason: apiError.message, method, path }, 'Cannot serve a subresource now');
  return jsonResponse(apiError.code, apiError.toStatus());
}
