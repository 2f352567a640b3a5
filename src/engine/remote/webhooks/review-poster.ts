/**
 * Posts reviews to one webhook over HTTPS. Connections are kept alive, responses are bounded in size, and errors are
 * formatted like Go. The signal carries the deadline, which covers connecting, headers and body.
 */
import { CallFailure } from '#engine/remote/webhooks/call-failure.ts';
import type { WebhookTarget } from '#engine/remote/webhooks/webhook-target.ts';
import { tryInOrder } from '#engine/remote/try-in-order.ts';
import { MAX_BODY_BYTES } from '#engine/request/limits.ts';
import { goNetworkError, UNUSABLE_CERTIFICATES, type DialTarget } from '#engine/remote/go-network-error.ts';
import type { Clock } from '#lib/clock.ts';
import { HttpsClient, type HttpsRequest } from '#lib/https/https-client.ts';
import { ClientIdentityError } from '#lib/https/https-error.ts';
import { readBody } from '#lib/https/read-body.ts';
import type { ClientIdentity } from '#lib/https/client-identity.ts';

/** A patch is base64 encoded and may be as large as a request body. */
export const MAX_RESPONSE_BYTES = 2 * MAX_BODY_BYTES;
const MAX_ANSWER_HEADER_BYTES = 16 * 1024;
const MAX_KEPT_SOCKETS = 4;

export interface HttpResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
}

interface ReviewPosterOptions {
  readonly target: WebhookTarget;
  /** PEM; '' = the system's root certificates. */
  readonly ca: string;
  readonly maxSockets: number;
  readonly clock: Clock;
}

export class ReviewPoster {
  readonly #target: WebhookTarget;
  readonly #identity: ClientIdentity;
  readonly #client: HttpsClient;

  constructor({ target, ca, maxSockets, clock }: ReviewPosterOptions) {
    this.#target = target;
    this.#identity = { ca: ca === '' ? undefined : ca };
    this.#client = new HttpsClient({ maxSockets, maxKept: MAX_KEPT_SOCKETS, clock });
  }

  /** Rejects with CallFailure, or with the signal's reason. `query` begins with a question mark. */
  async post(query: string, body: Buffer, { signal }: { signal: AbortSignal }): Promise<HttpResponse> {
    const request: HttpsRequest = {
      method: 'POST',
      path: this.#target.path + query,
      headers: {
        Host: this.#target.authority,
        Accept: 'application/json, */*',
        'Accept-Encoding': 'identity',
        'Content-Type': 'application/json',
        'Content-Length': String(body.length),
        'User-Agent': 'kube-apiserver-admission',
      },
      body,
      connection: 'repeatable',
      maxHeaderBytes: MAX_ANSWER_HEADER_BYTES,
      signal,
    };
    return await tryInOrder(this.#target.dial(), (one) => this.#postTo(one, request, signal));
  }

  /** Closes each connection after its last call. */
  retire(): void {
    this.#client.retire();
  }

  async #postTo(dialed: DialTarget, request: HttpsRequest, signal: AbortSignal): Promise<HttpResponse> {
    try {
      const { incoming } = await this.#client.send(dialed, this.#identity, request);
      const body = await readBody(incoming, MAX_RESPONSE_BYTES);
      const { statusCode: status = 0, headers } = incoming;
      return { status, contentType: headers['content-type'] ?? '', body };
    } catch (cause) {
      signal.throwIfAborted();
      const why = cause instanceof ClientIdentityError ? UNUSABLE_CERTIFICATES : goNetworkError(cause, dialed);
      throw new CallFailure(why, { cause });
    }
  }
}
