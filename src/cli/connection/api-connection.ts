/**
 * The requests of virtctl: JSON objects, verbs without a response body, and WebSockets. Uses HTTP/1.1, which WebSockets
 * need; a command sends too few requests to gain from HTTP/2. Errors are those of the API server.
 */
import type { IncomingMessage } from 'node:http';
import { apiServerOf, clientIdentityOf } from '#client/api-server.ts';
import { CommandError } from '#lib/command-line/command-error.ts';
import {
  CredentialError,
  replaceRefused,
  type ClientCredential,
  type CredentialSource,
} from '#client/credentials/credential-source.ts';
import type { ClusterAccess, ReadFile } from '#client/kubeconfig.ts';
import { TokenSource } from '#client/credentials/token-source.ts';
import { errorFromResponse } from '#client/transport.ts';
import type { ApiError } from '#kube/api-error.ts';
import { parseWarnings } from '#client/warnings.ts';
import type { Clock } from '#lib/clock.ts';
import { errorMessage } from '#lib/error-message.ts';
import { HttpsClient } from '#lib/https/https-client.ts';
import { BodyTooLargeError } from '#lib/https/https-error.ts';
import { readBody } from '#lib/https/read-body.ts';
import { HandshakeError } from '#lib/websocket/websocket-handshake.ts';
import type { WebSocketStream } from '#lib/websocket/websocket.ts';

const TIMEOUT_MS = 65_000;
/** Limit of concurrent requests. Open WebSockets do not count. */
const MAX_SOCKETS = 256;
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

/** The paths of requests, by their response and by the error in it. */
const requestPaths = new WeakMap<IncomingMessage | ApiError, string>();

/** Returns the path of the request that the server answered with this error. */
export function requestPathOf(error: ApiError): string | undefined {
  return requestPaths.get(error);
}

export function openConnection(options: ConnectionOptions): ApiConnection {
  const { access, userAgent, clock, readFile, impersonate, warn, trace } = options;
  const { server, prefix } = apiServerOf(access);
  const { origin } = new URL(access.server);
  const https = new HttpsClient({ maxSockets: MAX_SOCKETS, clock });
  const { token, tokenFile } = access;
  const source: CredentialSource =
    access.credentials ?? new TokenSource({ token, tokenFile, clock, readFile: async (file) => readFile(file) });
  const closing = new AbortController();
  const { signal } = closing;

  /** Sends the request with the current credential, and once more with another one if the server refuses the first. */
  async function authenticate<R extends ServerResponse>(use: (credential: ClientCredential) => Promise<R>): Promise<R> {
    try {
      const credential = await source.current({ signal });
      const response = await use(credential);
      if (response.incoming.statusCode !== 401) return response;
      const other = await replaceRefused(source, credential, { signal });
      if (other === undefined) return response;
      response.incoming.resume();
      return await use(other);
    } catch (error) {
      if (error instanceof CredentialError) throw new CommandError(error.message, { cause: error });
      throw error;
    }
  }

  async function send(method: string, path: string, extra: Record<string, string>, body?: string) {
    return await authenticate(async (credential) => {
      const headers = { ...headersFor(credential), ...extra };
      if (body !== undefined) {
        headers['Content-Type'] ??= 'application/json';
        // Node sends no Content-Length with DELETE by default.
        headers['Content-Length'] = String(Buffer.byteLength(body));
      }
      const request = { method, path: prefix + path, headers, headersTimeoutMs: TIMEOUT_MS };
      const bytes = body === undefined ? undefined : Buffer.from(body);
      return await observe(
        method,
        path,
        https.send(server, clientIdentityOf(access, credential), { ...request, body: bytes }),
      );
    });
  }

  function headersFor({ token: bearer }: ClientCredential): Record<string, string> {
    const headers: Record<string, string> = { Accept: 'application/json', 'User-Agent': userAgent };
    if (bearer !== undefined) headers['Authorization'] = `Bearer ${bearer}`;
    if (impersonate !== undefined) headers['Impersonate-User'] = impersonate;
    return headers;
  }

  /** Reports the response, and converts network errors. */
  async function observe<R extends ServerResponse>(method: string, path: string, responding: Promise<R>): Promise<R> {
    try {
      const response = await responding;
      trace?.(`${method} ${origin}${prefix}${path} ${response.incoming.statusCode ?? 0}`);
      requestPaths.set(response.incoming, path);
      if (warn !== undefined) for (const text of parseWarnings(response.incoming.headers['warning'])) warn(text);
      return response;
    } catch (cause) {
      if (cause instanceof HandshakeError) throw new CommandError(`Cannot open ${path}: ${cause.message}`, { cause });
      throw new CommandError(`Unable to connect to the server: ${errorMessage(cause)}`, { cause });
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
      const response = await authenticate(async (credential) => {
        const request = {
          path: prefix + path,
          protocols,
          headers: headersFor(credential),
          headersTimeoutMs: TIMEOUT_MS,
        };
        return await observe('GET', path, https.openWebSocket(server, clientIdentityOf(access, credential), request));
      });
      if (response.stream !== undefined) return response.stream;
      await readText(response);
      throw new CommandError(`Cannot open ${path}: the server did not switch to a WebSocket`);
    },

    close() {
      closing.abort(new CommandError('the connection is closed'));
      https.close();
    },
  };
}

interface ServerResponse {
  readonly incoming: IncomingMessage;
}

/** Reads the response. Throws ApiError unless the status is 2xx. */
async function readText(response: ServerResponse): Promise<string> {
  return (await readBytes(response, MAX_RESPONSE_BYTES)).toString('utf8');
}

async function readBytes({ incoming }: ServerResponse, maxBytes: number): Promise<Buffer> {
  const { statusCode: status = 500 } = incoming;
  const body = await readBody(incoming, maxBytes).catch((cause: unknown) => {
    throw cause instanceof BodyTooLargeError ? new ResponseTooLargeError(cause.message, { cause }) : cause;
  });
  if (status >= 200 && status <= 299) return body;
  const error = errorFromResponse(status, body.toString('utf8'));
  requestPaths.set(error, requestPaths.get(incoming) ?? '');
  throw error;
}

function parseJson(text: string, request: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw new CommandError(`Cannot read the response to ${request}: it is not JSON`, { cause });
  }
}
