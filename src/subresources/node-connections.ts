/**
 * Sends requests to the HTTPS endpoints of node agents. The address comes from the status of the Node; both sides
 * authenticate with certificates of the same CA. All waiting is bounded.
 */
import { Agent, request, type RequestOptions } from 'node:https';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import { checkServerIdentity, type PeerCertificate } from 'node:tls';
import type { Reader } from '#client/client.ts';
import { errorFromResponse } from '#client/transport.ts';
import { internalError, isApiError, tooManyRequests, type ApiError } from '#kube/api-error.ts';
import { NODES, type Node } from '#kube/core-kinds.ts';
import { userOfNode } from '#kube/node-user.ts';
import type { Clock } from '#lib/clock.ts';
import { errorMessage } from '#lib/error-message.ts';

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

export interface NodeGet extends NodeRequest {
  /** A longer response is an error. */
  readonly maxAnswerBytes: number;
}

export interface NodePost extends NodeGet {
  /** JSON. */
  readonly body: Buffer;
}

/** An upgrade that the node accepted: the head of its response, and the connection with the bytes received so far. */
export interface NodeUpgrade {
  /** Status line and headers, up to and including the empty line. */
  readonly responseHead: Buffer;
  readonly connection: Duplex;
  readonly head: Buffer;
}

/** Every method throws ApiError: the error that the node returned, or why the node did not respond. */
export interface NodeConnections {
  put(request: NodeRequest): Promise<void>;
  /** `get` and `post` resolve to the whole response. */
  get(request: NodeGet): Promise<Buffer>;
  post(request: NodePost): Promise<Buffer>;
  upgrade(request: NodeRequest, headers: Readonly<Record<string, string>>): Promise<NodeUpgrade>;
  /** Aborts requests that are in progress. */
  close(): void;
}

export interface NodeConnectionsOptions {
  /** Reads Nodes. */
  readonly client: Reader;
  /** Our certificate, by whose common name nodes authorize us, its key, and the CA of the nodes, as PEM. */
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
  /** Returns the current certificate, key and CA, if they are renewed at run time. */
  currentIdentity?(): PeerIdentity;
  /** True to require that the certificate of a node has the user name of that node. */
  readonly verifyNodeName?: boolean;
  readonly clock: Clock;
}

export interface PeerIdentity {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

export function createNodeConnections(options: NodeConnectionsOptions): NodeConnections {
  const { client, clock, currentIdentity = () => options, verifyNodeName = false } = options;
  let agent = createAgent(options);
  let identity: PeerIdentity = options;
  let open = 0;
  const currentAgent = () => {
    const now = currentIdentity();
    if (now.cert === identity.cert && now.ca === identity.ca) return agent;
    identity = now;
    // Requests in progress keep their connections.
    agent = createAgent(now);
    return agent;
  };

  async function send(
    method: string,
    { node, path, signal, body }: NodeRequest & { readonly body?: Buffer },
    headers: Readonly<Record<string, string>>,
  ) {
    if (open >= MAX_OPEN) throw tooManyRequests('too many requests to nodes are in progress', 1);
    open++;
    try {
      const { host, port } = endpointOf(await readNode(client, node, signal));
      const servername = isIP(host) === 0 ? host : '';
      const requestOptions: RequestOptions = {
        method,
        host,
        port,
        path,
        servername,
        agent: currentAgent(),
        headers,
        signal,
      };
      const checked = verifyNodeName
        ? { ...requestOptions, checkServerIdentity: createIdentityCheck(node) }
        : requestOptions;
      return await sendAndReceive(checked, { clock, body });
    } catch (error) {
      if (error instanceof Error && error.name === 'ApiError') throw error;
      const why = errorMessage(error);
      throw internalError(`Cannot reach the agent of node "${node}": ${why}`, error);
    } finally {
      open--;
    }
  }

  return {
    async put(nodeRequest) {
      const incoming = rejectUpgrade(nodeRequest, await send('PUT', nodeRequest, { 'Content-Length': '0' }));
      const text = await readTruncated(incoming);
      const { statusCode: status = 500 } = incoming;
      if (status < 200 || status > 299) throw errorFromResponse(status, text);
    },

    async get(nodeRequest) {
      return await readResponse(nodeRequest, await send('GET', nodeRequest, {}), clock);
    },

    async post(nodeRequest) {
      const headers = { 'Content-Type': 'application/json', 'Content-Length': String(nodeRequest.body.length) };
      return await readResponse(nodeRequest, await send('POST', nodeRequest, headers), clock);
    },

    async upgrade(nodeRequest, headers) {
      const response = await send('GET', nodeRequest, headers);
      if ('connection' in response) {
        return { responseHead: formatHead(response.incoming), connection: response.connection, head: response.head };
      }
      const text = await readTruncated(response.incoming);
      throw errorFromResponse(response.incoming.statusCode ?? 500, text);
    },

    close: () => agent.destroy(),
  };
}

function createAgent({ cert, key, ca }: PeerIdentity): Agent {
  const tls = { cert, key, ca, minVersion: 'TLSv1.2', ALPNProtocols: ['http/1.1'] } as const;
  // One connection per request: with a kept-alive connection that closes, a verb could be lost or performed twice.
  // No session resumption: a resumed session does not provide the certificate of the peer.
  return new Agent({ ...tls, keepAlive: false, maxSockets: MAX_OPEN, maxCachedSessions: 0 });
}

/** Compares the name in the certificate: addresses are reused, and a node reports its own address. */
function createIdentityCheck(node: string) {
  return (host: string, certificate: PeerCertificate): Error | undefined => {
    const error = checkServerIdentity(host, certificate);
    if (error !== undefined) return error;
    const name = certificate.subject?.CN;
    if (name === userOfNode(node)) return undefined;
    return new Error(`the server at its address has the certificate of "${String(name)}"`);
  };
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
export function endpointOf({ metadata, status }: Node): { readonly host: string; readonly port: number } {
  const port = status?.daemonEndpoints?.kubeletEndpoint?.Port ?? 0;
  for (const type of ['InternalIP', 'Hostname']) {
    const host = status?.addresses?.find((one) => one.type === type)?.address ?? '';
    if (host !== '' && port > 0) return { host, port };
  }
  throw internalError(`Cannot reach the agent of node "${metadata.name}": the node has no address and port`);
}

type NodeResponse =
  | { readonly incoming: IncomingMessage }
  | { readonly incoming: IncomingMessage; readonly connection: Duplex; readonly head: Buffer };

/** Returns the response to a request without an upgrade; throws if the node upgraded anyway. */
function rejectUpgrade({ node }: NodeRequest, response: NodeResponse): IncomingMessage {
  if (!('connection' in response)) return response.incoming;
  response.connection.destroy();
  throw internalError(`Cannot call the agent of node "${node}": it upgraded the connection without a request to do so`);
}

async function readResponse(nodeRequest: NodeGet, response: NodeResponse, clock: Clock): Promise<Buffer> {
  const incoming = rejectUpgrade(nodeRequest, response);
  const { statusCode: status = 500 } = incoming;
  if (status < 200 || status > 299) throw errorFromResponse(status, await readTruncated(incoming));
  return await readBounded(incoming, { maxBytes: nodeRequest.maxAnswerBytes, clock });
}

function sendAndReceive(
  options: RequestOptions,
  { clock, body }: { readonly clock: Clock; readonly body?: Buffer | undefined },
): Promise<NodeResponse> {
  return new Promise((resolve, reject) => {
    const outgoing = request(options);
    const stopTimers = startTimers(outgoing, clock);
    outgoing.on('error', (error) => {
      stopTimers();
      reject(error);
    });
    outgoing.once('response', (incoming) => {
      stopTimers();
      resolve({ incoming });
    });
    outgoing.once('upgrade', (incoming, connection, head) => {
      stopTimers();
      // The new owner observes the close; without this listener a reset would be an uncaught error.
      connection.on('error', () => {});
      resolve({ incoming, connection, head });
    });
    outgoing.end(body);
  });
}

function startTimers(outgoing: ClientRequest, clock: Clock): () => void {
  const fail = (why: string) => () => outgoing.destroy(new Error(why));
  const cancelConnectTimer = clock.after(CONNECT_TIMEOUT_MS, fail('no connection in time'));
  const cancelResponseTimer = clock.after(RESPONSE_TIMEOUT_MS, fail('no response in time'));
  outgoing.once('socket', (socket) => {
    socket.once('secureConnect', cancelConnectTimer);
  });
  return () => {
    cancelConnectTimer();
    cancelResponseTimer();
  };
}

/** Reads a response that is normally short; a longer one is truncated. */
async function readTruncated(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of incoming as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > MAX_RESPONSE_BYTES) break;
    }
  } catch (error) {
    throw incompleteError(error);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Reads the whole response; throws if it is too long or not complete in time. */
async function readBounded(
  incoming: IncomingMessage,
  { maxBytes, clock }: { readonly maxBytes: number; readonly clock: Clock },
): Promise<Buffer> {
  const stopTimer = clock.after(RESPONSE_TIMEOUT_MS, () => incoming.destroy(new Error('not complete in time')));
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of incoming as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > maxBytes) throw new Error(`it is longer than ${maxBytes} bytes`);
    }
  } catch (error) {
    throw incompleteError(error);
  } finally {
    stopTimer();
  }
  return Buffer.concat(chunks);
}

function incompleteError(error: unknown): ApiError {
  return internalError(`Cannot read the response of the node: ${(error as Error).message}`, error);
}

function formatHead({ statusMessage = '', rawHeaders }: IncomingMessage): Buffer {
  const lines = [`HTTP/1.1 101 ${statusMessage === '' ? 'Switching Protocols' : statusMessage}`];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`);
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}
