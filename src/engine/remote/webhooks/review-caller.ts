/**
 * Sends reviews to one webhook: to a function if its service runs in this process, otherwise over HTTPS, with the same
 * JSON. Concurrent and waiting calls, time and response size are bounded, so that a broken webhook affects only the
 * requests that need it.
 *
 *   call ──► wait for a slot ──► local function or HTTPS ──► the review in the response
 *   └───────────────── one deadline for all of it ─────────────────┘
 */
import { parseJson } from '#engine/encoding/json.ts';
import type { WebhookClientConfig } from '#engine/registry/webhook-client-config.ts';
import type { LocalService, LocalServices } from '#engine/remote/local-services.ts';
import { CallCanceled, CallFailure, DeadlineExceeded } from '#engine/remote/webhooks/call-failure.ts';
import { CallGate, type GateLimits } from '#engine/remote/webhooks/call-gate.ts';
import { MAX_RESPONSE_BYTES, ReviewPoster } from '#engine/remote/webhooks/review-poster.ts';
import { decodeResponse } from '#engine/remote/webhooks/webhook-response.ts';
import { resolveWebhookTarget, type WebhookTarget } from '#engine/remote/webhooks/webhook-target.ts';
import type { Store } from '#engine/store/store.ts';
import type { Clock } from '#lib/clock.ts';
import { errorMessage } from '#lib/error-message.ts';
import { raceSignal } from '#lib/race-signal.ts';

export interface ReviewCallerParts {
  readonly store: Store;
  readonly services: LocalServices;
  readonly clock: Clock;
}

interface ReviewDeadline {
  readonly timeoutSeconds: number;
  readonly signal: AbortSignal;
}

export class ReviewCaller {
  readonly #config: WebhookClientConfig;
  readonly #parts: ReviewCallerParts;
  readonly #limits: GateLimits;
  readonly #gate: CallGate;
  #target: WebhookTarget | undefined;
  #poster: ReviewPoster | undefined;
  #isRetired = false;

  constructor(config: WebhookClientConfig, parts: ReviewCallerParts, limits: GateLimits) {
    this.#config = config;
    this.#parts = parts;
    this.#limits = limits;
    this.#gate = new CallGate(limits);
  }

  /**
   * Resolves to the review in the response. Rejects with CallFailure. The review is built when it is sent, so that waiting
   * calls hold no copies of their objects.
   */
  async call(review: () => unknown, { timeoutSeconds, signal: outer }: ReviewDeadline): Promise<unknown> {
    const controller = new AbortController();
    const { signal } = controller;
    const cancel = () => controller.abort(new CallCanceled());
    if (outer.aborted) cancel();
    outer.addEventListener('abort', cancel, { once: true });
    const stopTimer = this.#parts.clock.after(timeoutSeconds * 1000, () => controller.abort(new DeadlineExceeded()));
    const query = `?timeout=${timeoutSeconds}s`;
    try {
      signal.throwIfAborted();
      return await this.#gate.run(() => this.#send(JSON.stringify(review()), query, signal), { signal });
    } finally {
      stopTimer();
      outer.removeEventListener('abort', cancel);
    }
  }

  /** Closes each connection after its last call; pending calls end by their own deadline. */
  retire(): void {
    this.#isRetired = true;
    this.#poster?.retire();
  }

  #send(text: string, query: string, signal: AbortSignal): Promise<unknown> {
    const { service } = this.#config;
    const local = service && this.#parts.services.find(service.namespace, service.name);
    if (local?.review === undefined) return this.#post(query, text, signal);
    const path = service?.path ?? '';
    return callLocal(local, (path.startsWith('/') ? path : `/${path}`) + query, text, signal);
  }

  async #post(query: string, text: string, signal: AbortSignal): Promise<unknown> {
    const target = (this.#target ??= resolveWebhookTarget(this.#config, this.#parts.store));
    const ca = Buffer.from(this.#config.caBundle ?? '', 'base64').toString('utf8');
    const { clock } = this.#parts;
    this.#poster ??= new ReviewPoster({ target, ca, maxSockets: this.#limits.running, clock });
    if (this.#isRetired) this.#poster.retire();
    const response = await this.#poster.post(query, Buffer.from(text), { signal }).catch((error: unknown) => {
      const url = `${target.origin}${target.path}${query}`;
      throw new CallFailure(`Post "${url}": ${errorMessage(error)}`, { cause: error });
    });
    return decodeResponse(response);
  }
}

/** Both sides get their own copy: JSON crosses the boundary, as over the wire. */
async function callLocal(service: LocalService, path: string, text: string, signal: AbortSignal): Promise<unknown> {
  const response = await raceSignal(service.review!(path, JSON.parse(text), { signal }), signal);
  const responseText = JSON.stringify(response ?? null);
  if (responseText.length > MAX_RESPONSE_BYTES) {
    throw new CallFailure(`the response is larger than ${MAX_RESPONSE_BYTES} bytes`);
  }
  return parseJson(responseText);
}
