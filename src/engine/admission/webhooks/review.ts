/** Builds the AdmissionReview that is sent to a webhook. Pure. */
import type { AdmissionAttributes } from '#engine/admission/admission.ts';
import { admissionRequest, objectIn, type AdmissionRequestHead } from '#engine/admission/matching/admission-request.ts';
import type { AdmissionReviewVersion } from '#engine/admission/webhooks/verdict.ts';
import type { Resource } from '#engine/registry/resource.ts';
import type { KubeObject } from '#kube/meta.ts';

export interface WebhookReview {
  readonly kind: 'AdmissionReview';
  readonly apiVersion: string;
  readonly request: AdmissionRequestHead & {
    readonly uid: string;
    readonly object: KubeObject | null;
    readonly oldObject: KubeObject | null;
  };
}

export function admissionReview(
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
