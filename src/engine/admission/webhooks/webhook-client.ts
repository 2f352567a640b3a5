/**
 * Calls one webhook: as a function if its service runs in this process, otherwise over HTTPS, with the same
 * AdmissionReview. Concurrent and waiting calls, time and response size are bounded, so that a broken webhook affects only
 * the requests that need it.
 *
 *   call ──► wait for a slot ──► local function or HTTPS ──► check the response ──► Verdict
 *   └──────────────── one deadline for all of it (timeoutSeconds) ────────────────┘
 */
import type { AdmissionAttributes } from '#engine/admission/admission.ts';
import { CallCanceled, CallFailure, DeadlineExceeded } from '#engine/admission/webhooks/call-failure.ts';
import { CallGate, type GateLimits } from '#engine/admission/webhooks/call-gate.ts';
import { resolveWebhookTarget, type ClientConfig, type WebhookTarget } from '#engine/admission/webhooks/endpoint.ts';
import type { Hook } from '#engine/admission/webhooks/hook.ts';
import { MAX_RESPONSE_BYTES, ReviewPoster, type HttpResponse } from '#engine/admission/webhooks/https-client.ts';
import { admissionReview, type WebhookReview } from '#engine/admission/webhooks/review.ts';
import {
  decodeResponse,
  readVerdict,
  InvalidResponse,
  type WebhookVerdict,
} from '#engine/admission/webhooks/verdict.ts';
import { parseJson } from '#engine/json.ts';
import type { Resource } from '#engine/registry/resource.ts';
import type { LocalService, LocalServices } from '#engine/services.ts';
import type { Store } from '#engine/store/store.ts';
import type { Clock } from '#lib/clock.ts';
import { newUid } from '#lib/ids.ts';
import { raceSignal } from '#lib/race-signal.ts';
import { errorMessage } from '#lib/error-message.ts';

export interface WebhookClientParts {
  readonly store: Store;
  readonly services: LocalServices;
  readonly clock: Clock;
}

const LIMITS: GateLimits = { running: 32, waiting: 512 };

export class WebhookClient {
  readonly #config: ClientConfig;
  readonly #parts: WebhookClientParts;
  readonly #gate = new CallGate(LIMITS);
  #target: WebhookTarget | undefined;
  #poster: ReviewPoster | undefined;
  #isRetired = false;

  constructor(config: ClientConfig, parts: WebhookClientParts) {
    this.#config = config;
    this.#parts = parts;
  }

  /** Rejects only with CallFailure, whose message follows `failed calling webhook "x": `. */
  async call(
    hook: Hook,
    attributes: AdmissionAttributes,
    version: Resource,
    mutating: boolean,
  ): Promise<WebhookVerdict> {
    const reviewVersion = hook.version;
    if (reviewVersion === undefined) {
      const why = 'webhook does not accept known AdmissionReview versions (v1, v1beta1)';
      throw new CallFailure(`could not create admission objects: ${why}`);
    }
    const uid = newUid();
    const query = `?timeout=${hook.timeoutSeconds}s`;
    try {
      const response = await this.#withDeadline(hook.timeoutSeconds, attributes.signal, (signal) =>
        // The review is built when it is sent, so that waiting calls hold no copies of their objects.
        this.#gate.run(() => this.#send(admissionReview(uid, attributes, version, reviewVersion), query, signal), {
          signal,
        }),
      );
      return readVerdict(response, { uid, version: reviewVersion, mutating });
    } catch (error) {
      const why = errorMessage(error);
      const doing = error instanceof InvalidResponse ? 'received invalid webhook response' : 'failed to call webhook';
      throw new CallFailure(`${doing}: ${why}`, { cause: error });
    }
  }

  /** Closes each connection after its last call; pending calls end by their own deadline. */
  retire(): void {
    this.#isRetired = true;
    this.#poster?.retire();
  }

  async #withDeadline<T>(seconds: number, outer: AbortSignal, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController();
    const cancel = () => controller.abort(new CallCanceled());
    if (outer.aborted) cancel();
    outer.addEventListener('abort', cancel, { once: true });
    const stopTimer = this.#parts.clock.after(seconds * 1000, () => controller.abort(new DeadlineExceeded()));
    try {
      controller.signal.throwIfAborted();
      return await run(controller.signal);
    } finally {
      stopTimer();
      outer.removeEventListener('abort', cancel);
    }
  }

  #send(review: WebhookReview, query: string, signal: AbortSignal): Promise<unknown> {
    const { service } = this.#config;
    const local = service && this.#parts.services.find(service.namespace, service.name);
    const text = JSON.stringify(review);
    if (local?.review === undefined) return this.#post(query, text, signal);
    const path = service?.path ?? '';
    return callLocal(local, (path.startsWith('/') ? path : `/${path}`) + query, text, signal);
  }

  async #post(query: string, text: string, signal: AbortSignal): Promise<unknown> {
    const target = (this.#target ??= resolveWebhookTarget(this.#config, this.#parts.store));
    const { clock } = this.#parts;
    this.#poster ??= new ReviewPoster({ target, ca: pemOf(this.#config), maxSockets: LIMITS.running, clock });
    if (this.#isRetired) this.#poster.retire();
    let response: HttpResponse;
    try {
      response = await this.#poster.post(query, Buffer.from(text), { signal });
    } catch (error) {
      const why = errorMessage(error);
      throw new CallFailure(`Post "${target.origin}${target.path}${query}": ${why}`, { cause: error });
    }
    return decodeResponse(response);
  }
}

const pemOf = ({ caBundle = '' }: ClientConfig) => Buffer.from(caBundle, 'base64').toString('utf8');

/** Both sides get their own copy: JSON crosses the boundary, as over the wire. */
async function callLocal(service: LocalService, path: string, text: string, signal: AbortSignal): Promise<unknown> {
  const response = await raceSignal(service.review!(path, JSON.parse(text), { signal }), signal);
  const responseText = JSON.stringify(response ?? null);
  if (responseText.length > MAX_RESPONSE_BYTES) {
    throw new CallFailure(`the response is larger than ${MAX_RESPONSE_BYTES} bytes`);
  }
  return parseJson(responseText);
}
