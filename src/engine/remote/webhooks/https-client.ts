/**
 * Posts to one webhook over HTTPS. Connections are kept alive and bounded, responses are bounded in size, redirects are
 * not followed. The signal carries the deadline, which covers connecting, headers and body.
 */
import { Agent, request, type RequestOptions } from 'node:https';
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { createSecureContext, type SecureContext } from 'node:tls';
import { CallFailure } from '#engine/remote/webhooks/call-failure.ts';
import type { WebhookTarget } from '#engine/remote/webhooks/webhook-target.ts';
import { tryInOrder } from '#engine/remote/try-in-order.ts';
import { goNetworkError, type DialTarget } from '#engine/remote/go-network-error.ts';
import { MAX_BODY_BYTES } from '#engine/request/limits.ts';

/** A patch is base64 encoded and may be as large as a request body. */
export const MAX_RESPONSE_BYTES = 2 * MAX_BODY_BYTES;
const MAX_ANSWER_HEADER_BYTES = 16 * 1024;
const MAX_KEPT_SOCKETS = 4;

export interface HttpResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
}

export interface HttpsClientOptions {
  readonly target: WebhookTarget;
  /** PEM; '' = the system's root certificates. */
  readonly ca: string;
  readonly maxSockets: number;
}

export class HttpsClient {
  readonly #target: WebhookTarget;
  readonly #ca: string;
  readonly #maxSockets: number;
  #agent: Agent | undefined;

  constructor({ target, ca, maxSockets }: HttpsClientOptions) {
    this.#target = target;
    this.#ca = ca;
    this.#maxSockets = maxSockets;
  }

  /** Rejects with CallFailure, or with the signal's reason. `query` begins with a question mark. */
  async post(query: string, body: Buffer, { signal }: { signal: AbortSignal }): Promise<HttpResponse> {
    return await tryInOrder(this.#target.dial(), (one) => this.#postTo(one, query, body, { signal }));
  }

  async #postTo(
    dialed: DialTarget,
    query: string,
    body: Buffer,
    { signal }: { signal: AbortSignal },
  ): Promise<HttpResponse> {
    const options = this.#options(query, body, dialed, signal);
    for (let kept = MAX_KEPT_SOCKETS; ; kept--) {
      const attempt: Attempt = { reused: false };
      try {
        return await exchange(options, body, attempt);
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof CallFailure) throw error;
        // The server may have closed a kept-alive connection before it received the request.
        if (kept > 0 && attempt.reused && isClosed(error)) continue;
        throw new CallFailure(goNetworkError(error, dialed), { cause: error });
      }
    }
  }

  /** Closes kept-alive connections and those of pending calls. */
  close(): void {
    this.#agent?.destroy();
  }

  #options(query: string, body: Buffer, { host, port, serverName }: DialTarget, signal: AbortSignal): RequestOptions {
    return {
      method: 'POST',
      host,
      port,
      path: this.#target.path + query,
      agent: (this.#agent ??= this.#newAgent()),
      signal,
      maxHeaderSize: MAX_ANSWER_HEADER_BYTES,
      // An IP address is never sent as a server name; the certificate is still checked for it.
      ...(isIP(serverName) === 0 ? { servername: serverName } : { servername: '' }),
      headers: {
        Host: this.#target.authority,
        Accept: 'application/json, */*',
        'Accept-Encoding': 'identity',
        'Content-Type': 'application/json',
        'Content-Length': body.length,
        'User-Agent': 'kube-apiserver-admission',
      },
    };
  }

  #newAgent(): Agent {
    return new Agent({
      keepAlive: true,
      maxSockets: this.#maxSockets,
      maxFreeSockets: MAX_KEPT_SOCKETS,
      secureContext: secureContext(this.#ca),
      ALPNProtocols: ['http/1.1'],
    });
  }
}

function secureContext(ca: string): SecureContext {
  const unusable = 'unable to load root certificates: unable to parse bytes as PEM block';
  if (ca !== '' && !ca.includes('-----BEGIN CERTIFICATE-----')) throw new CallFailure(unusable);
  try {
    return createSecureContext({ ...(ca === '' ? {} : { ca }), minVersion: 'TLSv1.2' });
  } catch (error) {
    throw new CallFailure(unusable, { cause: error });
  }
}

interface Attempt {
  /** True if the request was sent on a kept-alive connection and got no response. */
  reused: boolean;
}

function exchange(options: RequestOptions, body: Buffer, attempt: Attempt): Promise<HttpResponse> {
  return new Promise((resolve, reject) => {
    let hasResponse = false;
    const outgoing = request(options);
    outgoing.on('error', (error) => {
      attempt.reused = outgoing.reusedSocket && !hasResponse;
      reject(error);
    });
    outgoing.once('response', (incoming) => {
      hasResponse = true;
      readResponse(incoming).then(resolve, (error: unknown) => {
        outgoing.destroy();
        reject(error);
      });
    });
    outgoing.end(body);
  });
}

async function readResponse(incoming: IncomingMessage): Promise<HttpResponse> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_RESPONSE_BYTES) throw new CallFailure(`the response is larger than ${MAX_RESPONSE_BYTES} bytes`);
    chunks.push(chunk);
  }
  const { statusCode: status = 0, headers } = incoming;
  return { status, contentType: headers['content-type'] ?? '', body: Buffer.concat(chunks, bytes) };
}

const CLOSED: ReadonlySet<string | undefined> = new Set(['ECONNRESET', 'EPIPE']);
const isClosed = (error: unknown) => error instanceof Error && CLOSED.has((error as NodeJS.ErrnoException).code);
