/**
 * Sends requests to the HTTPS endpoints of node agents. The address comes from the status of the Node; both sides
 * authenticate with certificates of the same CA. All waiting is bounded.
 */
import type { IncomingMessage } from 'node:http';
import type { PeerCertificate } from 'node:tls';
import type { Reader } from '#client/client.ts';
import { errorFromResponse } from '#client/transport.ts';
import { internalError, isApiError, tooManyRequests } from '#kube/api-error.ts';
import { NODES, type Node } from '#kube/core-kinds.ts';
import { userOfNode } from '#kube/node-user.ts';
import type { Clock } from '#lib/clock.ts';
import { errorMessage } from '#lib/error-message.ts';
import { HttpsClient, type HttpsRequest, type UpgradedConnection } from '#lib/https/https-client.ts';
import { readBodyStart, readBodyWithin } from '#lib/https/read-body.ts';
import type { ClientIdentity } from '#lib/https/client-identity.ts';

const CONNECT_TIMEOUT_MS = 5000;
/** Long enough for a verb to wait until earlier verbs of the guest are done. */
const RESPONSE_TIMEOUT_MS = 30_000;
const MAX_RESPONSE_BYTES = 64 * 1024;
const MAX_OPEN = 2000;

export interface NodeRequest {
  readonly node: string;
  readonly path: string;
  readonly signal: AbortSignal;
}

interface NodeGet extends NodeRequest {
  /** A longer response is an error. */
  readonly maxAnswerBytes: number;
}

export interface NodePost extends NodeGet {
  /** JSON. */
  readonly body: Buffer;
}

/** Every method throws ApiError: the error that the node returned, or why the node did not respond. */
export interface NodeConnections {
  put(request: NodeRequest): Promise<void>;
  /** `get` and `post` resolve to the whole response. */
  get(request: NodeGet): Promise<Buffer>;
  post(request: NodePost): Promise<Buffer>;
  upgrade(request: NodeRequest, headers: Readonly<Record<string, string>>): Promise<UpgradedConnection>;
  /** Aborts requests that are in progress. */
  close(): void;
}

interface NodeConnectionsOptions {
  /** Reads Nodes. */
  readonly client: Reader;
  /** Our certificate, by whose common name nodes authorize us, its key, and the CA of the nodes, as PEM. */
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
  /** Returns the current certificate, key and CA, if they are renewed at run time. */
  currentIdentity?(): ClientIdentity;
  /** True to require that the certificate of a node has the user name of that node. */
  readonly verifyNodeName?: boolean;
  readonly clock: Clock;
}

export function createNodeConnections(options: NodeConnectionsOptions): NodeConnections {
  const { client, clock, cert, key, ca, verifyNodeName = false } = options;
  const { currentIdentity = () => ({ cert, key, ca }) } = options;
  const https = new HttpsClient({ maxSockets: MAX_OPEN, clock });
  let open = 0;

  async function send(
    { node, path, signal }: NodeRequest,
    request: Pick<HttpsRequest, 'method' | 'headers' | 'body' | 'upgrade'>,
  ) {
    if (open >= MAX_OPEN) throw tooManyRequests('too many requests to nodes are in progress', 1);
    open++;
    try {
      const server = endpointOf(await readNode(client, node, signal));
      // One connection per request: with a kept-alive connection that closes, a verb could be lost or performed twice.
      return await https.send(server, currentIdentity(), {
        ...request,
        path,
        signal,
        connectTimeoutMs: CONNECT_TIMEOUT_MS,
        headersTimeoutMs: RESPONSE_TIMEOUT_MS,
        checkPeer: verifyNodeName ? (certificate) => findNameError(node, certificate) : undefined,
      });
    } catch (error) {
      if (error instanceof Error && error.name === 'ApiError') throw error;
      const why = errorMessage(error);
      throw internalError(`Cannot reach the agent of node "${node}": ${why}`, error);
    } finally {
      open--;
    }
  }

  /** Reads the response. Throws the error that the node returned. */
  async function readResponse(incoming: IncomingMessage, maxBytes: number): Promise<Buffer> {
    const { statusCode: status = 500 } = incoming;
    const limits = { timeoutMs: RESPONSE_TIMEOUT_MS, clock };
    try {
      if (status >= 200 && status <= 299) return await readBodyWithin(incoming, { ...limits, maxBytes });
      throw errorFromResponse(status, await readBodyStart(incoming, { ...limits, maxBytes: MAX_RESPONSE_BYTES }));
    } catch (error) {
      if (error instanceof Error && error.name === 'ApiError') throw error;
      throw internalError(`Cannot read the response of the node: ${errorMessage(error)}`, error);
    }
  }

  return {
    async put(nodeRequest) {
      const { incoming } = await send(nodeRequest, { method: 'PUT', headers: { 'Content-Length': '0' } });
      await readResponse(incoming, MAX_RESPONSE_BYTES);
    },

    async get(nodeRequest) {
      const { incoming } = await send(nodeRequest, { method: 'GET', headers: {} });
      return await readResponse(incoming, nodeRequest.maxAnswerBytes);
    },

    async post(nodeRequest) {
      const { body } = nodeRequest;
      const headers = { 'Content-Type': 'application/json', 'Content-Length': String(body.length) };
      const { incoming } = await send(nodeRequest, { method: 'POST', headers, body });
      return await readResponse(incoming, nodeRequest.maxAnswerBytes);
    },

    async upgrade(nodeRequest, headers) {
      const response = await send(nodeRequest, { method: 'GET', headers, upgrade: true });
      if ('connection' in response) return response;
      await readResponse(response.incoming, MAX_RESPONSE_BYTES);
      throw internalError(`Cannot open a stream to the agent of node "${nodeRequest.node}": it refused the upgrade`);
    },

    close: () => https.close(),
  };
}

/** Compares the name in the certificate: addresses are reused, and a node reports its own address. */
function findNameError(node: string, { subject }: PeerCertificate): Error | undefined {
  if (subject?.CN === userOfNode(node)) return undefined;
  return new Error(`the server at its address has the certificate of "${String(subject?.CN)}"`);
}

async function readNode(client: Reader, name: string, signal: AbortSignal): Promise<Node> {
  try {
    return await client.get(NODES, { name }, { signal });
  } catch (error) {
    if (!isApiError(error, 'NotFound')) throw error;
    throw internalError(`Cannot reach the agent of node "${name}": there is no such node`, error);
  }
}

/** Returns the address of the node agent; throws ApiError if the Node does not have one. */
function endpointOf({ metadata, status }: Node): { readonly host: string; readonly port: number } {
  const port = status?.daemonEndpoints?.kubeletEndpoint?.Port ?? 0;
  for (const type of ['InternalIP', 'Hostname']) {
    const host = status?.addresses?.find((one) => one.type === type)?.address ?? '';
    if (host !== '' && port > 0) return { host, port };
  }
  throw internalError(`Cannot reach the agent of node "${metadata.name}": the node has no address and port`);
}
