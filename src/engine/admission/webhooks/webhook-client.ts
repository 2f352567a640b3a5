/**
 * Calls one admission webhook and reads its verdict. remote/webhooks/review-caller.ts bounds the calls.
 *
 *   review ──► call ──► check the response ──► verdict
 */
import type { AdmissionAttributes } from '#engine/admission/admission.ts';
import { admissionRequest, objectIn, type AdmissionRequestHead } from '#engine/admission/matching/admission-request.ts';
import type { Hook } from '#engine/admission/webhooks/hook.ts';
import {
  readVerdict,
  InvalidResponse,
  type WebhookVerdict,
  type AdmissionReviewVersion,
} from '#engine/admission/webhooks/verdict.ts';
import type { Resource } from '#engine/registry/resource.ts';
import type { WebhookClientConfig } from '#engine/registry/webhook-client-config.ts';
import { CallFailure } from '#engine/remote/webhooks/call-failure.ts';
import type { GateLimits } from '#engine/remote/webhooks/call-gate.ts';
import { ReviewCaller, type ReviewCallerParts } from '#engine/remote/webhooks/review-caller.ts';
import { errorMessage } from '#lib/error-message.ts';
import { newUid } from '#lib/ids.ts';
import type { KubeObject } from '#kube/meta.ts';

const LIMITS: GateLimits = { running: 32, waiting: 512 };

export class WebhookClient {
  readonly #caller: ReviewCaller;

  constructor(config: WebhookClientConfig, parts: ReviewCallerParts) {
    this.#caller = new ReviewCaller(config, parts, LIMITS);
  }

  /** Rejects only with CallFailure, whose message follows `failed calling webhook "x": `. */
  async call(
    { version: reviewVersion, timeoutSeconds }: Hook,
    attributes: AdmissionAttributes,
    version: Resource,
    mutating: boolean,
  ): Promise<WebhookVerdict> {
    if (reviewVersion === undefined) {
      const why = 'webhook does not accept known AdmissionReview versions (v1, v1beta1)';
      throw new CallFailure(`could not create admission objects: ${why}`);
    }
    const uid = newUid();
    try {
      const review = () => admissionReview(uid, attributes, version, reviewVersion);
      const response = await this.#caller.call(review, { timeoutSeconds, signal: attributes.signal });
      return readVerdict(response, { uid, version: reviewVersion, mutating });
    } catch (error) {
      const why = errorMessage(error);
      const doing = error instanceof InvalidResponse ? 'received invalid webhook response' : 'failed to call webhook';
      throw new CallFailure(`${doing}: ${why}`, { cause: error });
    }
  }

  /** Closes its connections when no call is pending; pending calls end by their own deadline. */
  retire(): void {
    this.#caller.retire();
  }
}

interface WebhookReview {
  readonly kind: 'AdmissionReview';
  readonly apiVersion: string;
  readonly request: AdmissionRequestHead & {
    readonly uid: string;
    readonly object: KubeObject | null;
    readonly oldObject: KubeObject | null;
  };
}

/** Builds the AdmissionReview that is sent to a webhook. */
function admissionReview(
  uid: string,
  attributes: AdmissionAttributes,
  version: Resource,
  reviewVersion: AdmissionReviewVersion,
): WebhookReview {
  const { dryRun, options, ...request } = admissionRequest(attributes, version);
  return {
    kind: 'AdmissionReview',
    apiVersion: `admission.k8s.io/${reviewVersion}`,
    request: {
      uid,
      ...request,
      object: objectIn(attributes.object, attributes, version) ?? null,
      oldObject: objectIn(attributes.oldObject, attributes, version) ?? null,
      dryRun,
      options,
    },
  };
}
