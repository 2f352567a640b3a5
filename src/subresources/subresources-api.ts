/**
 * subresources.kubevirt.io: verbs of VMs and of their instances as an aggregated API. Who may ask was decided by the API
 * server before a request comes here; what is allowed when is api/can.ts's, what runs a guest the node's.
 */
import { isStateVerb } from '#api/can.ts';
import { startAttempt } from '#client/abort.ts';
import type { Client } from '#client/client.ts';
import { ApiError, badRequest, internalError, methodNotAllowed, timeout, tooLarge } from '#kube/api-error.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { belowVerb } from '#subresources/access-path.ts';
import { agentCertificate, type AgentSigner } from '#subresources/agent-certificate.ts';
import { act, nodeRequestOf, type Asked } from '#subresources/act.ts';
import { diskRequest } from '#subresources/disk-request.ts';
import { expand } from '#subresources/expand.ts';
import { groupDocument, resourcesDocument, versionDocument } from '#subresources/discovery.ts';
import {
  emptyAnswer,
  jsonAnswer,
  type BytesAnswer,
  type SubresourceAnswer,
  type SubresourceHandler,
  type SubresourceRequest,
} from '#subresources/http-types.ts';
import type { NodeConnections, NodeRequest } from '#subresources/node-connections.ts';
import { readOptions } from '#subresources/read-options.ts';
import { relayUpgrade } from '#subresources/relay.ts';
import { isGuestRead, parseRoute, type Route } from '#subresources/route.ts';
import { uploadRequest } from '#subresources/upload-request.ts';
import { requireVmUpdate } from '#subresources/vm-update-right.ts';

/** As long as kube-apiserver waits for anything; a stream only has to begin by then. */
const VERB_TIMEOUT_MS = 60_000;
const MAX_BODY_BYTES = 64 * 1024;
/** A PNG of noise on the largest screen that QEMU's own graphics have. */
const MAX_PICTURE_BYTES = 64 * 1024 * 1024;
/** As much as a guest may answer. */
const MAX_GUEST_BYTES = 2 * 1024 * 1024;

export interface SubresourcesParts {
  /** Reads VMs, instances, claims and pods, patches VMs, instances and claims, creates migrations, deletes pods. */
  readonly client: Client;
  readonly nodes: NodeConnections;
  /** Where nodes get their certificates from us. */
  readonly agents?: AgentSigner | undefined;
  readonly log: Log;
  readonly clock: Clock;
}

/** Answers each request; never rejects. */
export function createSubresourcesApi(parts: SubresourcesParts): SubresourceHandler {
  return async (request) => {
    try {
      return await serve(parts, request, parseRoute(request.path));
    } catch (error) {
      return failure(parts, request, error);
    }
  };
}

async function serve(parts: SubresourcesParts, request: SubresourceRequest, route: Route): Promise<SubresourceAnswer> {
  switch (route.kind) {
    case 'group':
      return document(request, groupDocument());
    case 'resources':
      return document(request, resourcesDocument(route.version));
    case 'version':
      return document(request, versionDocument());
    case 'healthz':
      return document(request, { apiserver: { connectivity: 'ok' } });
    case 'verb':
      return await verb(parts, request, route);
    case 'disk':
      return await disk(parts, request, route);
    case 'agent-certificate':
      return await agentCertificate(parts.agents, request);
    case 'upload':
      return await upload(parts, request, route);
    case 'expand':
      return await expand(parts, request, route);
    case 'later':
      throw new ApiError(501, 'NotImplemented', `${route.what} is not supported yet`);
    case 'never':
      throw new ApiError(501, 'NotImplemented', route.why);
    case 'bad':
      throw badRequest(route.why);
    case 'unknown':
      throw new ApiError(404, 'NotFound', 'the server could not find the requested resource', { details: {} });
  }
}

function document({ method }: SubresourceRequest, value: unknown): BytesAnswer {
  if (method !== 'GET' && method !== 'HEAD') throw methodNotAllowed();
  return jsonAnswer(200, value);
}

async function verb(
  parts: SubresourcesParts,
  request: SubresourceRequest,
  { resource, verb: asksFor, method, namespace, name, forward }: Extract<Route, { kind: 'verb' }>,
): Promise<SubresourceAnswer> {
  if (request.method !== method) throw methodNotAllowed();
  const text = method === 'GET' ? '' : await bodyOf(request);
  const options = readOptions(asksFor, text, request.query);
  const below = belowVerb(asksFor, request.query, forward);
  const error = () => timeout(`${asksFor} of "${name}" took too long`);
  const attempt = startAttempt(parts.clock, { timeoutMs: VERB_TIMEOUT_MS, error, signal: request.signal });
  const user = request.user.name;
  const asked: Asked = { resource, verb: asksFor, namespace, name, options, user, below, signal: attempt.signal };
  try {
    if (isStateVerb(asksFor)) {
      await requireVmUpdate(parts.client, { user: request.user, signal: attempt.signal }, { namespace, name });
    }
    if (method === 'PUT') return emptyAnswer(await act(parts, asked));
    if (isGuestRead(asksFor)) return await guestAnswer(parts, asked);
    return asksFor === 'vnc/screenshot' ? await picture(parts, asked) : await stream(parts, request, asked);
  } finally {
    attempt.release();
  }
}

/** What the guest's agent answered, as its node put it together. */
async function guestAnswer(parts: SubresourcesParts, asked: Asked): Promise<BytesAnswer> {
  const body = await parts.nodes.get({ ...(await nodeRequestOf(parts, asked)), maxAnswerBytes: MAX_GUEST_BYTES });
  return { status: 200, contentType: 'application/json', body };
}

async function disk(
  parts: SubresourcesParts,
  request: SubresourceRequest,
  { verb: asksFor, namespace, name }: Extract<Route, { kind: 'disk' }>,
): Promise<SubresourceAnswer> {
  if (request.method !== 'GET') throw methodNotAllowed();
  expectUpgrade(request, asksFor);
  const error = () => timeout(`${asksFor} of "${name}" took too long`);
  const attempt = startAttempt(parts.clock, { timeoutMs: VERB_TIMEOUT_MS, error, signal: request.signal });
  const volume = request.query.get('volume') ?? '';
  try {
    const target = await diskRequest(parts, { verb: asksFor, namespace, name, volume, signal: attempt.signal });
    return await relayed(parts, request, target);
  } finally {
    attempt.release();
  }
}

async function upload(
  parts: SubresourcesParts,
  request: SubresourceRequest,
  { namespace, claim }: Extract<Route, { kind: 'upload' }>,
): Promise<SubresourceAnswer> {
  if (request.method !== 'GET') throw methodNotAllowed();
  expectUpgrade(request, 'upload');
  const error = () => timeout(`upload to "${claim}" took too long`);
  const attempt = startAttempt(parts.clock, { timeoutMs: VERB_TIMEOUT_MS, error, signal: request.signal });
  try {
    return await relayed(parts, request, await uploadRequest(parts, { namespace, claim, signal: attempt.signal }));
  } finally {
    attempt.release();
  }
}

async function bodyOf(request: SubresourceRequest): Promise<string> {
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

/** The handshake itself is the client's and the node's. */
async function stream(parts: SubresourcesParts, request: SubresourceRequest, asked: Asked): Promise<SubresourceAnswer> {
  const target = await nodeRequestOf(parts, asked);
  expectUpgrade(request, asked.verb);
  return await relayed(parts, request, target);
}

async function picture(parts: SubresourcesParts, asked: Asked): Promise<BytesAnswer> {
  const target = await nodeRequestOf(parts, asked);
  const body = await parts.nodes.get({ ...target, maxAnswerBytes: MAX_PICTURE_BYTES });
  return { status: 200, contentType: 'image/png', body };
}

function expectUpgrade({ upgrade }: SubresourceRequest, what: string): void {
  if (upgrade?.toLowerCase() === 'websocket') return;
  throw badRequest(`${what} is a WebSocket; the request does not ask to upgrade to one`);
}

async function relayed(
  { nodes }: SubresourcesParts,
  request: SubresourceRequest,
  target: NodeRequest,
): Promise<SubresourceAnswer> {
  const headers: Record<string, string> = { Connection: 'Upgrade', Upgrade: 'websocket' };
  for (const name of WEBSOCKET_HEADERS) {
    const value = request.header?.(name);
    if (value !== undefined) headers[name] = value;
  }
  return relayUpgrade(await nodes.upgrade(target, headers));
}

function failure({ log }: SubresourcesParts, { method, path }: SubresourceRequest, error: unknown): BytesAnswer {
  const told =
    error instanceof ApiError ? error : internalError(error instanceof Error ? error.message : String(error));
  if (told.code >= 500 && told.code !== 501) log.warn({ err: error, method, path }, 'Cannot serve a subresource');
  return jsonAnswer(told.code, told.toStatus());
}
