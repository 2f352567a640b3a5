/**
 * Requests to the HTTPS endpoints of node agents: where they listen is what their Node says, who they are their
 * certificate of the one CA that we believe, and they see ours. All waiting is bounded.
 */
import { Agent, request, type RequestOptions } from 'node:https';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import { checkServerIdentity, type PeerCertificate } from 'node:tls';
import type { Reader } from '#client/client.ts';
import { errorOfAnswer } from '#client/transport.ts';
import { internalError, isApiError, tooManyRequests, type ApiError } from '#kube/api-error.ts';
import { NODES, type Node } from '#kube/core-kinds.ts';
import { userOfNode } from '#kube/node-user.ts';
import type { Clock } from '#lib/clock.ts';

const CONNECT_TIMEOUT_MS = 5000;
/** A verb waits until the guest's earlier ones are done. */
const ANSWER_TIMEOUT_MS = 30_000;
const MAX_ANSWER_BYTES = 64 * 1024;
const MAX_OPEN = 2000;

export interface NodeRequest {
  readonly node: string;
  readonly path: string;
  readonly signal: AbortSignal;
}

export interface NodeGet extends NodeRequest {
  /** A longer answer is refused. */
  readonly maxAnswerBytes: number;
}

export interface NodePost extends NodeGet {
  /** JSON. */
  readonly body: Buffer;
}

/** The node has taken the upgrade: its answer's head, and the connection with what came already. */
export interface NodeUpgrade {
  /** Status line and headers, up to and including the empty line. */
  readonly answer: Buffer;
  readonly connection: Duplex;
  readonly head: Buffer;
}

/** Every method throws ApiError: what the node answered, or why there is no answer. */
export interface NodeConnections {
  put(asked: NodeRequest): Promise<void>;
  /** Both give the whole answer. */
  get(asked: NodeGet): Promise<Buffer>;
  post(asked: NodePost): Promise<Buffer>;
  upgrade(asked: NodeRequest, headers: Readonly<Record<string, string>>): Promise<NodeUpgrade>;
  /** Ends requests under way. */
  close(): void;
}

export interface NodeConnectionsOptions {
  /** Reads Nodes. */
  readonly client: Reader;
  /** PEM: our certificate, by whose common name nodes tell what we may, its key, and the CA of the nodes. */
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
  /** The same as they are now, where they are renewed. */
  renewed?(): PeerIdentity;
  /** Nodes have certificates of the users that they are; others have no business at their addresses. */
  readonly checksName?: boolean;
  readonly clock: Clock;
}

export interface PeerIdentity {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

export function createNodeConnections(options: NodeConnectionsOptions): NodeConnections {
  const { client, clock, renewed = () => options, checksName = false } = options;
  let agent = agentOf(options);
  let identity: PeerIdentity = options;
  let open = 0;
  const currentAgent = () => {
    const now = renewed();
    if (now.cert === identity.cert && now.ca === identity.ca) return agent;
    identity = now;
    // Requests that are under way keep their connections.
    agent = agentOf(now);
    return agent;
  };

  async function ask(
    method: string,
    { node, path, signal, body }: NodeRequest & { readonly body?: Buffer },
    headers: Readonly<Record<string, string>>,
  ) {
    if (open >= MAX_OPEN) throw tooManyRequests('too many requests to nodes are under way', 1);
    open++;
    try {
      const { host, port } = endpointOf(await readNode(client, node, signal));
      const servername = isIP(host) === 0 ? host : '';
      const asked: RequestOptions = { method, host, port, path, servername, agent: currentAgent(), headers, signal };
      const checked = checksName ? { ...asked, checkServerIdentity: identityOf(node) } : asked;
      return await answered(checked, { clock, body });
    } catch (error) {
      if (error instanceof Error && error.name === 'ApiError') throw error;
      const why = error instanceof Error ? error.message : String(error);
      throw internalError(`Cannot reach the agent of node "${node}": ${why}`, error);
    } finally {
      open--;
    }
  }

  return {
    async put(asked) {
      const incoming = stayed(asked, await ask('PUT', asked, { 'Content-Length': '0' }));
      const text = await readWhole(incoming);
      const { statusCode: status = 500 } = incoming;
      if (status < 200 || status > 299) throw errorOfAnswer(status, text);
    },

    async get(asked) {
      return await wholeAnswer(asked, await ask('GET', asked, {}), clock);
    },

    async post(asked) {
      const headers = { 'Content-Type': 'application/json', 'Content-Length': String(asked.body.length) };
      return await wholeAnswer(asked, await ask('POST', asked, headers), clock);
    },

    async upgrade(asked, headers) {
      const answer = await ask('GET', asked, headers);
      if ('connection' in answer) {
        return { answer: headOf(answer.incoming), connection: answer.connection, head: answer.head };
      }
      const text = await readWhole(answer.incoming);
      throw errorOfAnswer(answer.incoming.statusCode ?? 500, text);
    },

    close: () => agent.destroy(),
  };
}

function agentOf({ cert, key, ca }: PeerIdentity): Agent {
  const tls = { cert, key, ca, minVersion: 'TLSv1.2', ALPNProtocols: ['http/1.1'] } as const;
  // Each its own connection: a verb must not be lost, nor done twice, because a kept one was closed under it.
  // A session that is resumed does not show the certificate of the other side.
  return new Agent({ ...tls, keepAlive: false, maxSockets: MAX_OPEN, maxCachedSessions: 0 });
}

/** Addresses are given out again, and a node says its own: only the name tells who it is. */
function identityOf(node: string) {
  return (host: string, certificate: PeerCertificate): Error | undefined => {
    const fault = checkServerIdentity(host, certificate);
    if (fault !== undefined) return fault;
    const name = certificate.subject?.CN;
    if (name === userOfNode(node)) return undefined;
    return new Error(`"${String(name)}" answers where it should be`);
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

/** Throws ApiError where the node does not tell. */
export function endpointOf({ metadata, status }: Node): { readonly host: string; readonly port: number } {
  const port = status?.daemonEndpoints?.kubeletEndpoint?.Port ?? 0;
  for (const type of ['InternalIP', 'Hostname']) {
    const host = status?.addresses?.find((one) => one.type === type)?.address ?? '';
    if (host !== '' && port > 0) return { host, port };
  }
  throw internalError(`Cannot reach the agent of node "${metadata.name}": the node has no address and port`);
}

type Answered =
  | { readonly incoming: IncomingMessage }
  | { readonly incoming: IncomingMessage; readonly connection: Duplex; readonly head: Buffer };

/** Nobody asked for an upgrade. */
function stayed({ node }: NodeRequest, answer: Answered): IncomingMessage {
  if (!('connection' in answer)) return answer.incoming;
  answer.connection.destroy();
  throw internalError(`the agent of node "${node}" left HTTP unasked`);
}

async function wholeAnswer(asked: NodeGet, answer: Answered, clock: Clock): Promise<Buffer> {
  const incoming = stayed(asked, answer);
  const { statusCode: status = 500 } = incoming;
  if (status < 200 || status > 299) throw errorOfAnswer(status, await readWhole(incoming));
  return await readBounded(incoming, { maxBytes: asked.maxAnswerBytes, clock });
}

function answered(
  options: RequestOptions,
  { clock, body }: { readonly clock: Clock; readonly body?: Buffer | undefined },
): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const outgoing = request(options);
    const stopTimers = bound(outgoing, clock);
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
      // Whoever takes it sees its close; without a listener a reset would be an uncaught error.
      connection.on('error', () => {});
      resolve({ incoming, connection, head });
    });
    outgoing.end(body);
  });
}

function bound(outgoing: ClientRequest, clock: Clock): () => void {
  const fail = (why: string) => () => outgoing.destroy(new Error(why));
  const connected = clock.after(CONNECT_TIMEOUT_MS, fail('no connection in time'));
  const answered = clock.after(ANSWER_TIMEOUT_MS, fail('no answer in time'));
  outgoing.once('socket', (socket) => {
    socket.once('secureConnect', connected);
  });
  return () => {
    connected();
    answered();
  };
}

/** The answers of an agent are short; what is longer, or breaks off, is cut. */
async function readWhole(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of incoming as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > MAX_ANSWER_BYTES) break;
    }
  } catch (error) {
    throw brokenOff(error);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** All of it, in time, or nothing. */
async function readBounded(
  incoming: IncomingMessage,
  { maxBytes, clock }: { readonly maxBytes: number; readonly clock: Clock },
): Promise<Buffer> {
  const stopTimer = clock.after(ANSWER_TIMEOUT_MS, () => incoming.destroy(new Error('not complete in time')));
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of incoming as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > maxBytes) throw new Error(`it is longer than ${maxBytes} bytes`);
    }
  } catch (error) {
    throw brokenOff(error);
  } finally {
    stopTimer();
  }
  return Buffer.concat(chunks);
}

function brokenOff(error: unknown): ApiError {
  return internalError(`the answer of the node broke off: ${(error as Error).message}`, error);
}

function headOf({ statusMessage = '', rawHeaders }: IncomingMessage): Buffer {
  const lines = [`HTTP/1.1 101 ${statusMessage === '' ? 'Switching Protocols' : statusMessage}`];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`);
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}
