/** Calls the conversion webhook of one definition, with many objects in one ConversionReview. */
import {
  convertedObjects,
  conversionReview,
  InvalidConversion,
  type ConversionRequest,
  reviewVersionOf,
} from '#engine/conversion/conversion-review.ts';
import type { ConversionWebhookConfig } from '#engine/registry/crd/definition.ts';
import type { ObjectConverter } from '#engine/registry/stored-form.ts';
import type { GateLimits } from '#engine/remote/webhooks/call-gate.ts';
import { ReviewCaller, type ReviewCallerParts } from '#engine/remote/webhooks/review-caller.ts';
import { errorMessage } from '#lib/error-message.ts';
import { newUid } from '#lib/ids.ts';
import { ApiError } from '#kube/api-error.ts';
import { kindText } from '#kube/go/go-text.ts';
import type { KubeObject } from '#kube/meta.ts';

const LIMITS: GateLimits = { running: 16, waiting: 512 };
const TIMEOUT_SECONDS = 30;
/** Limits for one review: its response is about as large, and is parsed synchronously. */
const MAX_BATCH = 500;
const MAX_BATCH_CHARACTERS = 1024 * 1024;

export class ConversionWebhook implements ObjectConverter {
  readonly #reviewVersions: readonly string[];
  readonly #caller: ReviewCaller;

  constructor({ clientConfig = {}, conversionReviewVersions = [] }: ConversionWebhookConfig, parts: ReviewCallerParts) {
    this.#reviewVersions = conversionReviewVersions;
    this.#caller = new ReviewCaller(clientConfig, parts, LIMITS);
  }

  async convert(objects: readonly KubeObject[], apiVersion: string, signal: AbortSignal): Promise<KubeObject[]> {
    const converted: KubeObject[] = [];
    for (const batch of batchesOf(objects)) converted.push(...(await this.#convertBatch(batch, apiVersion, signal)));
    return converted;
  }

  /** Closes its connections when no call is pending. */
  retire(): void {
    this.#caller.retire();
  }

  async #convertBatch(objects: readonly KubeObject[], apiVersion: string, signal: AbortSignal): Promise<KubeObject[]> {
    const version = reviewVersionOf(this.#reviewVersions);
    if (version === undefined) throw conversionFailure('no supported conversion review versions');
    const request: ConversionRequest = { uid: newUid(), version, desiredApiVersion: apiVersion, objects };
    const subject = `conversion webhook for ${subjectOf(objects)}`;
    try {
      const review = () => conversionReview(request);
      const response = await this.#caller.call(review, { timeoutSeconds: TIMEOUT_SECONDS, signal });
      return convertedObjects(response, request);
    } catch (error) {
      const why = errorMessage(error);
      throw conversionFailure(`${subject} ${error instanceof InvalidConversion ? why : `failed: ${why}`}`, error);
    }
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
