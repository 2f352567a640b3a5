/**
 * Calls the conversion webhook of one definition: as a function if its service runs in this process, otherwise over
 * HTTPS, with the same ConversionReview. Batches many objects; calls, time and response size are bounded.
 */
import { CallCanceled, CallFailure, DeadlineExceeded } from '#engine/admission/webhooks/call-failure.ts';
import { CallGate, type GateLimits } from '#engine/admission/webhooks/call-gate.ts';
import { type ClientConfig, resolveWebhookTarget } from '#engine/admission/webhooks/endpoint.ts';
import { MAX_RESPONSE_BYTES, ReviewPoster } from '#engine/admission/webhooks/https-client.ts';
import { decodeResponse } from '#engine/admission/webhooks/verdict.ts';
import {
  convertedObjects,
  conversionReview,
  InvalidConversion,
  type ConversionRequest,
  reviewVersionOf,
} from '#engine/conversion/conversion-review.ts';
import { kindText } from '#engine/kind-text.ts';
import { parseJson } from '#engine/json.ts';
import type { LocalService, LocalServices } from '#engine/services.ts';
import type { Store } from '#engine/store/store.ts';
import type { Clock } from '#lib/clock.ts';
import { newUid } from '#lib/ids.ts';
import { raceSignal } from '#lib/race-signal.ts';
import { ApiError } from '#kube/api-error.ts';
import type { KubeObject } from '#kube/meta.ts';
import { errorMessage } from '#lib/error-message.ts';

export interface ConversionParts {
  readonly store: Store;
  readonly services: LocalServices;
  readonly clock: Clock;
}

export interface ConversionConfig {
  readonly clientConfig?: ClientConfig;
  readonly conversionReviewVersions?: readonly string[];
}

const LIMITS: GateLimits = { running: 16, waiting: 512 };
const TIMEOUT_SECONDS = 30;
const QUERY = `?timeout=${TIMEOUT_SECONDS}s`;
/** Limits for one review: its response is about as large, and is parsed synchronously. */
const MAX_BATCH = 500;
const MAX_BATCH_CHARACTERS = 1024 * 1024;

export class ConversionWebhook {
  readonly #config: ConversionConfig;
  readonly #parts: ConversionParts;
  readonly #gate = new CallGate(LIMITS);
  #poster: ReviewPoster | undefined;
  #isRetired = false;

  constructor(config: ConversionConfig, parts: ConversionParts) {
    this.#config = config;
    this.#parts = parts;
  }

  /** Converts objects and keeps their order. Does not modify them. Rejects with an ApiError. */
  async convert(objects: readonly KubeObject[], apiVersion: string, signal: AbortSignal): Promise<KubeObject[]> {
    const converted: KubeObject[] = [];
    for (const batch of batchesOf(objects)) converted.push(...(await this.#convertBatch(batch, apiVersion, signal)));
    return converted;
  }

  /** Closes each connection after its last call. */
  retire(): void {
    this.#isRetired = true;
    this.#poster?.retire();
  }

  async #convertBatch(objects: readonly KubeObject[], apiVersion: string, signal: AbortSignal): Promise<KubeObject[]> {
    const version = reviewVersionOf(this.#config.conversionReviewVersions ?? []);
    if (version === undefined) throw conversionFailure('no supported conversion review versions');
    const request: ConversionRequest = { uid: newUid(), version, desiredApiVersion: apiVersion, objects };
    const subject = `conversion webhook for ${subjectOf(objects)}`;
    try {
      const response = await this.#withDeadline(signal, (until) =>
        this.#gate.run(() => this.#send(JSON.stringify(conversionReview(request)), until), { signal: until }),
      );
      return convertedObjects(response, request);
    } catch (error) {
      const why = errorMessage(error);
      throw conversionFailure(`${subject} ${error instanceof InvalidConversion ? why : `failed: ${why}`}`, error);
    }
  }

  async #withDeadline<T>(outer: AbortSignal, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController();
    const cancel = () => controller.abort(new CallCanceled());
    if (outer.aborted) cancel();
    outer.addEventListener('abort', cancel, { once: true });
    const stop = this.#parts.clock.after(TIMEOUT_SECONDS * 1000, () => controller.abort(new DeadlineExceeded()));
    try {
      controller.signal.throwIfAborted();
      return await run(controller.signal);
    } finally {
      stop();
      outer.removeEventListener('abort', cancel);
    }
  }

  #send(text: string, signal: AbortSignal): Promise<unknown> {
    const { clientConfig = {} } = this.#config;
    const { service } = clientConfig;
    const local = service && this.#parts.services.find(service.namespace, service.name);
    if (local?.review === undefined) return this.#post(clientConfig, text, signal);
    const path = service?.path ?? '';
    return callLocal(local, (path.startsWith('/') ? path : `/${path}`) + QUERY, text, signal);
  }

  async #post(config: ClientConfig, text: string, signal: AbortSignal): Promise<unknown> {
    const target = resolveWebhookTarget(config, this.#parts.store);
    const ca = Buffer.from(config.caBundle ?? '', 'base64').toString('utf8');
    this.#poster ??= new ReviewPoster({ target, ca, maxSockets: LIMITS.running, clock: this.#parts.clock });
    if (this.#isRetired) this.#poster.retire();
    const response = await this.#poster.post(QUERY, Buffer.from(text), { signal }).catch((error: unknown) => {
      const why = errorMessage(error);
      throw new CallFailure(`Post "${target.origin}${target.path}${QUERY}": ${why}`, { cause: error });
    });
    return decodeResponse(response);
  }
}

/** Kubernetes gives these errors no reason. */
export function conversionFailure(message: string, cause?: unknown): ApiError {
  return new ApiError(500, '', message, { cause });
}

function subjectOf([first, ...rest]: readonly KubeObject[]): string {
  return kindText(rest.length === 0 ? first! : { ...first!, kind: `${first!.kind}List` });
}

function* batchesOf(objects: readonly KubeObject[]): Generator<readonly KubeObject[]> {
  let batch: KubeObject[] = [];
  let characters = 0;
  for (const object of objects) {
    const length = objects.length === 1 ? 0 : JSON.stringify(object).length;
    if (batch.length > 0 && (batch.length >= MAX_BATCH || characters + length > MAX_BATCH_CHARACTERS)) {
      yield batch;
      batch = [];
      characters = 0;
    }
    batch.push(object);
    characters += length;
  }
  if (batch.length > 0) yield batch;
}

/** Both sides get their own copy: JSON crosses the boundary, as over the wire. */
async function callLocal(service: LocalService, path: string, text: string, signal: AbortSignal): Promise<unknown> {
  const response = await raceSignal(service.review!(path, JSON.parse(text), { signal }), signal);
  const responseText = JSON.stringify(response ?? null);
  if (responseText.length > MAX_RESPONSE_BYTES)
    throw new CallFailure(`the response is larger than ${MAX_RESPONSE_BYTES} bytes`);
  return parseJson(responseText);
}
