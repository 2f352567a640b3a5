/**
 * The requests of virtctl: JSON objects, verbs without a response body, and WebSockets. Uses HTTP/1.1, which WebSockets
 * need. Errors are those of the API server.
 */
import { Agent, request, type RequestOptions } from 'node:https';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import { CommandError } from '#lib/command-line/command-error.ts';
import {
  CredentialError,
  replaceRefused,
  type ClientCredential,
  type CredentialSource,
} from '#client/credential-source.ts';
import type { ClusterAccess, ReadFile } from '#client/kubeconfig.ts';
import { TokenSource } from '#client/token-source.ts';
import { errorFromResponse } from '#client/transport.ts';
import { parseWarnings } from '#client/warnings.ts';
import type { Clock } from '#lib/clock.ts';
import { clientHandshake, checkServerResponse } from '#lib/websocket-handshake.ts';
import { newNonce, WebSocketStream } from '#lib/websocket.ts';
import { errorMessage } from '#lib/error-message.ts';

const TIMEOUT_MS = 65_000;
const KEEP_ALIVE_MS = 30_000;
const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;

/** The response exceeds the size limit; a smaller list page may fit. */
export class ResponseTooLargeError extends CommandError {
  override name = 'ResponseTooLargeError';
}

export interface ApiConnection {
  /** The default namespace. */
  readonly namespace: string;
  /** Throws, like all requests, ApiError if the server refuses and CommandError if it does not respond. */
  get(path: string): Promise<unknown>;
  /** Gets text such as logs. */
  getText(path: string): Promise<string>;
  /** Gets binary content such as images. Throws ResponseTooLargeError above `maxBytes`. */
  getBytes(path: string, maxBytes: number): Promise<Buffer>;
  put(path: string, body: unknown): Promise<void>;
  /** Like put, for verbs that return an object. */
  putForObject(path: string, body: unknown): Promise<unknown>;
  /** Returns the created object. */
  post(path: string, body: unknown): Promise<unknown>;
  /** Deletes the object with this uid; its dependents are deleted in the background. */
  remove(path: string, uid: string): Promise<void>;
  /** Applies a JSON merge patch (RFC 7386) and returns the object. */
  patch(path: string, body: unknown): Promise<unknown>;
  openWebSocket(path: string, protocols: readonly string[]): Promise<WebSocketStream>;
  close(): void;
}

export interface ConnectionOptions {
  readonly access: ClusterAccess;
  readonly userAgent: string;
  readonly clock: Clock;
  readonly readFile: ReadFile;
  /** The user to impersonate. */
  readonly impersonate?: string | undefined;
  /** Called with each Warning of the server. */
  readonly warn?: (text: string) => void;
  /** Called with one line per request. */
  readonly trace?: (line: string) => void;
}

export function openConnection(options: ConnectionOptions): ApiConnection {
  const { access, userAgent, clock, readFile, impersonate, warn, trace } = options;
  const url = new URL(access.server);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const agents = new CredentialAgents(access, host);
  const { token, tokenFile } = access;
  const source: CredentialSource =
    access.credentials ?? new TokenSource({ token, tokenFile, clock, readFile: async (file) => readFile(file) });
  const closing = new AbortController();
  const { signal } = closing;

  async function send(
    method: string,
    path: string,
    extra: Record<string, string>,
    body?: string,
  ): Promise<ServerResponse> {
    try {
      const credential = await source.current({ signal });
      const response = await sendAs(credential, method, path, extra, body);
      if (response.incoming.statusCode !== 401) return response;
      const other = await replaceRefused(source, credential, { signal });
      if (other === undefined) return response;
      response.incoming.resume();
      return await sendAs(other, method, path, extra, body);
    } catch (error) {
      if (error instanceof CredentialError) throw new CommandError(error.message, { cause: error });
      throw error;
    }
  }

  async function sendAs(
    credential: ClientCredential,
    method: string,
    path: string,
    extra: Record<string, string>,
    body: string | undefined,
  ): Promise<ServerResponse> {
    const agent = agents.agentFor(credential);
    const headers: Record<string, string> = { Accept: 'application/json', 'User-Agent': userAgent, ...extra };
    if (credential.token !== undefined) headers['Authorization'] = `Bearer ${credential.token}`;
    if (impersonate !== undefined) headers['Impersonate-User'] = impersonate;
    if (body !== undefined) {
      headers['Content-Type'] ??= 'application/json';
      // Node sends no Content-Length with DELETE by default.
      headers['Content-Length'] = String(Buffer.byteLength(body));
    }
    const target = url.pathname.replace(/\/+$/, '') + path;
    const outgoing = { method, host, port: url.port === '' ? 443 : Number(url.port), path: target, headers, agent };
    try {
      const response = await sendRequest(outgoing, body, clock);
      trace?.(`${method} ${url.origin}${target} ${response.incoming.statusCode ?? 0}`);
      if (warn !== undefined) for (const text of parseWarnings(response.incoming.headers['warning'])) warn(text);
      return response;
    } catch (error) {
      const why = errorMessage(error);
      throw new CommandError(`Unable to connect to the server: ${why}`, { cause: error });
    }
  }

  return {
    namespace: access.namespace,

    async get(path) {
      return parseJson(await readText(await send('GET', path, {})), `GET ${path}`);
    },

    async getText(path) {
      return await readText(await send('GET', path, {}));
    },

    async getBytes(path, maxBytes) {
      return await readBytes(await send('GET', path, { Accept: '*/*' }), maxBytes);
    },

    async put(path, body) {
      await readText(await send('PUT', path, {}, JSON.stringify(body)));
    },

    async putForObject(path, body) {
      return parseJson(await readText(await send('PUT', path, {}, JSON.stringify(body))), `PUT ${path}`);
    },

    async post(path, body) {
      return parseJson(await readText(await send('POST', path, {}, JSON.stringify(body))), `POST ${path}`);
    },

    async remove(path, uid) {
      // The default policy of Jobs orphans their pods.
      const propagationPolicy = 'Background';
      const options = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid }, propagationPolicy };
      await readText(await send('DELETE', path, {}, JSON.stringify(options)));
    },

    async patch(path, body) {
      const type = { 'Content-Type': 'application/merge-patch+json' };
      return parseJson(await readText(await send('PATCH', path, type, JSON.stringify(body))), `PATCH ${path}`);
    },

    async openWebSocket(path, protocols) {
      const key16 = newNonce();
      const response = await send('GET', path, clientHandshake(key16, protocols));
      if (!('connection' in response)) {
        await readText(response);
        throw new CommandError(`Cannot open ${path}: the server did not switch to a WebSocket`);
      }
      const { incoming, connection, head } = response;
      const error = checkServerResponse(key16, protocols, (name) => headerOf(incoming, name));
      if (error === undefined) {
        // A console may be silent for days; only TCP keep-alive detects a lost peer.
        incoming.socket.setKeepAlive(true, KEEP_ALIVE_MS);
        return new WebSocketStream(connection, { role: 'client', head });
      }
      connection.destroy();
      throw new CommandError(`Cannot open ${path}: ${error}`);
    },

    close() {
      closing.abort(new CommandError('the connection is closed'));
      agents.close();
    },
  };
}

/** The connections of each client certificate. Those of an earlier certificate stay open until they end. */
class CredentialAgents {
  readonly #access: ClusterAccess;
  readonly #host: string;
  readonly #agents = new Map<string | undefined, Agent>();

  constructor(access: ClusterAccess, host: string) {
    this.#access = access;
    this.#host = host;
  }

  agentFor(credential: ClientCredential): Agent {
    const { certificateAuthority: ca, serverName, insecureSkipTlsVerify } = this.#access;
    const { clientCertificate: cert, clientKey: key } =
      this.#access.clientCertificate === undefined ? credential : this.#access;
    let agent = this.#agents.get(cert);
    if (agent === undefined) {
      agent = new Agent({
        ca,
        cert,
        key,
        // SNI does not allow IP addresses; the certificate is then checked against the address.
        servername: serverName ?? (isIP(this.#host) === 0 ? this.#host : ''),
        rejectUnauthorized: !insecureSkipTlsVerify,
        minVersion: 'TLSv1.2',
        ALPNProtocols: ['http/1.1'],
      });
      this.#agents.set(cert, agent);
    }
    return agent;
  }

  close(): void {
    for (const agent of this.#agents.values()) agent.destroy();
  }
}

type Upgraded = { readonly connection: Duplex; readonly head: Buffer };
type ServerResponse = { readonly incoming: IncomingMessage } & (Upgraded | object);

function sendRequest(options: RequestOptions, body: string | undefined, clock: Clock): Promise<ServerResponse> {
  return new Promise((resolve, reject) => {
    const outgoing: ClientRequest = request(options);
    const late = new Error(`no response within ${TIMEOUT_MS / 1000} seconds`);
    const stopTimer = clock.after(TIMEOUT_MS, () => outgoing.destroy(late));
    outgoing.on('error', (error) => {
      stopTimer();
      reject(error);
    });
    outgoing.once('response', (incoming) => {
      stopTimer();
      resolve({ incoming });
    });
    outgoing.once('upgrade', (incoming, connection, head) => {
      stopTimer();
      connection.on('error', () => {});
      resolve({ incoming, connection, head });
    });
    outgoing.end(body);
  });
}

/** Reads the response. Throws ApiError unless the status is 2xx. */
async function readText(response: ServerResponse): Promise<string> {
  return (await readBytes(response, MAX_RESPONSE_BYTES)).toString('utf8');
}

async function readBytes({ incoming }: ServerResponse, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new ResponseTooLargeError(`the response is larger than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  const whole = Buffer.concat(chunks, bytes);
  const { statusCode: status = 500 } = incoming;
  if (status < 200 || status > 299) throw errorFromResponse(status, whole.toString('utf8'));
  return whole;
}

function parseJson(text: string, request: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw new CommandError(`Cannot read the response to ${request}: it is not JSON`, { cause });
  }
}

function headerOf({ headers }: IncomingMessage, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}
