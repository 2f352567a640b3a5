/**
 * The transport over HTTPS: headers, credentials, limits and timeouts. lib/https/ owns the connections.
 * Nothing is retried here, because the caller knows whether a failed request may be repeated. The exception is a request
 * that the server refused with 401: it was not processed, and is repeated once if there is another credential.
 */
import { readFile } from 'node:fs/promises';
import { startAttempt } from '#client/abort.ts';
import type { TimedAttempt } from '#client/abort.ts';
import { replaceRefused, type ClientCredential, type CredentialSource } from '#client/credentials/credential-source.ts';
import { jsonLines } from '#client/json-lines.ts';
import { apiServerOf, clientIdentityOf } from '#client/api-server.ts';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { TokenSource } from '#client/credentials/token-source.ts';
import {
  DEFAULT_RESPONSE_BYTES,
  TransportError,
  describeRequest,
  errorFromResponse,
  parseResponse,
} from '#client/transport.ts';
import type { Transport, TransportRequest, TransportResponse } from '#client/transport.ts';
import { parseWarnings } from '#client/warnings.ts';
import { ApiError } from '#kube/api-error.ts';
import type { Clock } from '#lib/clock.ts';
import { errorMessage } from '#lib/error-message.ts';
import { Http2Connections } from '#lib/https/http2-connections.ts';
import type { StreamedResponse } from '#lib/https/http2-exchange.ts';
import { readBody } from '#lib/https/read-body.ts';

export interface HttpTransport extends Transport {
  /** Uses another client certificate or other authorities for the same server. Requests in flight continue. */
  renew(access: ClusterAccess): void;
  /** Closes all connections; requests on them fail. */
  close(): void;
}

export interface HttpTransportOptions {
  readonly userAgent: string;
  readonly clock: Clock;
  /** Limit for a complete response, and for the header of a stream. */
  readonly timeoutMs?: number;
  readonly maxLineBytes?: number;
  readonly readFile?: (path: string) => Promise<string>;
}

/** A little more than the minute after which kube-apiserver itself gives up. */
const TIMEOUT_MS = 65_000;

export function createHttpTransport(access: ClusterAccess, options: HttpTransportOptions): HttpTransport {
  const { userAgent, clock, timeoutMs = TIMEOUT_MS, maxLineBytes } = options;
  const { server, prefix } = apiServerOf(access);
  const connections = new Http2Connections({ server, identity: clientIdentityOf(access), clock });
  const { token, tokenFile } = access;
  const tokens = new TokenSource({ token, tokenFile, clock, readFile: options.readFile ?? readText });
  let latest = access;
  let source: CredentialSource = access.credentials ?? tokens;
  /** The certificate of the credential source that connections use. */
  let certificate: string | undefined;
  const closing = new AbortController();

  /** Runs `use` with the current credential, and once more with another one if the server refuses the first. */
  async function authenticate<V>(
    request: TransportRequest,
    use: (credential: ClientCredential) => Promise<V>,
  ): Promise<V> {
    const used = source;
    // The time limit of the request does not include this: a plugin may wait until the user has logged in.
    const signal = used === tokens ? undefined : withClosing(request.signal);
    const credential = await used.current({ signal });
    try {
      applyCertificate(credential);
      return await use(credential);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 401) throw error;
      const other = await replaceRefused(used, credential, { signal });
      if (other === undefined) throw error;
      applyCertificate(other);
      return await use(other);
    }
  }

  function withClosing(signal: AbortSignal | undefined): AbortSignal {
    return signal === undefined ? closing.signal : AbortSignal.any([closing.signal, signal]);
  }

  /** Lets new connections use the certificate of the credential. */
  function applyCertificate({ clientCertificate, clientKey }: ClientCredential): void {
    if (latest.clientCertificate !== undefined || clientCertificate === certificate) return;
    certificate = clientCertificate;
    connections.renew(clientIdentityOf(latest, { clientCertificate, clientKey }));
  }

  async function exchange(
    request: TransportRequest,
    { token: bearer }: ClientCredential,
    { signal }: TimedAttempt,
  ): Promise<StreamedResponse> {
    const { method, path, query, accept = 'application/json' } = request;
    const headers: Record<string, string> = { accept, 'user-agent': userAgent };
    if (bearer !== undefined) headers['authorization'] = `Bearer ${bearer}`;
    const body = request.body === undefined ? undefined : Buffer.from(JSON.stringify(request.body));
    if (body !== undefined) headers['content-type'] = request.contentType ?? 'application/json';
    const target = query === undefined || query.size === 0 ? path : `${path}?${query.toString()}`;
    const response = await connections.exchange({ method, path: prefix + target, headers, body, signal });
    if (response.status >= 200 && response.status <= 299) return response;
    throw errorFromResponse(response.status, await readAll(response.body, DEFAULT_RESPONSE_BYTES));
  }

  function begin(request: TransportRequest): TimedAttempt {
    const error = () => new TransportError(`no response within ${timeoutMs / 1000} seconds`);
    return startAttempt(clock, { timeoutMs, error, signal: request.signal });
  }

  return {
    async request(request): Promise<TransportResponse> {
      let attempt: TimedAttempt | undefined;
      try {
        return await authenticate(request, async (credential) => {
          attempt?.release();
          attempt = begin(request);
          const { status, headers, body } = await exchange(request, credential, attempt);
          const text = await readAll(body, request.maxResponseBytes ?? DEFAULT_RESPONSE_BYTES);
          return {
            status,
            body: parseResponse(text, describeRequest(request)),
            warnings: parseWarnings(headers['warning']),
          };
        });
      } catch (error) {
        throw toCallerError(error, request, attempt);
      } finally {
        attempt?.release();
      }
    },

    async *stream(request) {
      let attempt: TimedAttempt | undefined;
      const onAbort = (): void => attempt?.abort(request.signal?.reason);
      try {
        const { body } = await authenticate(request, async (credential) => {
          attempt?.release();
          attempt = begin(request);
          return await exchange(request, credential, attempt);
        });
        // From here on, only the caller's signal ends the stream.
        attempt?.release();
        if (request.signal?.aborted) onAbort();
        request.signal?.addEventListener('abort', onAbort);
        yield* jsonLines(body, { what: describeRequest(request), readLine: request.readLine, maxLineBytes });
      } catch (error) {
        throw toCallerError(error, request, attempt);
      } finally {
        attempt?.release();
        request.signal?.removeEventListener('abort', onAbort);
      }
    },

    renew(renewed) {
      latest = renewed;
      source = renewed.credentials ?? tokens;
      certificate = undefined;
      connections.renew(clientIdentityOf(renewed));
    },
    close() {
      closing.abort(new TransportError('the client is closed'));
      connections.close();
    },
  };
}

/**
 * Returns the error for the caller: the API's own error, the reason of the abort, or a TransportError with its cause.
 */
function toCallerError(error: unknown, request: TransportRequest, attempt: TimedAttempt | undefined): unknown {
  if (request.signal?.aborted) return request.signal.reason;
  if (error instanceof ApiError) return error;
  const cause: unknown = attempt?.signal.aborted ? attempt.signal.reason : error;
  if (cause instanceof TransportError && cause.message.startsWith('Cannot ')) return cause;
  const message = errorMessage(cause);
  return new TransportError(`Cannot ${describeRequest(request)}: ${message}`, { cause });
}

async function readAll(body: AsyncIterable<Buffer>, maxBytes: number): Promise<string> {
  return (await readBody(body, maxBytes)).toString('utf8');
}

function readText(path: string): Promise<string> {
  return readFile(path, 'utf8');
}
