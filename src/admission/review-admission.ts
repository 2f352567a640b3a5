/**
 * The webhook as a function of path, review and lookup. The server, in this process or over HTTPS, provides the lookup.
 * The paths are those of the webhook configurations (operator/objects/).
 */
import {
  mutateVirtualMachine,
  mutateVirtualMachineInstance,
  mutateVirtualMachineInstanceMigration,
  type MutationParts,
} from '#admission/mutate.ts';
import { reviewPodEviction, type EvictionParts } from '#admission/pod-evictions.ts';
import { reviewProtectedDelete } from '#admission/protected-deletes.ts';
import { parseReview, buildReviewResponse } from '#admission/review.ts';
import type { ReviewRequest, ReviewResponse, AdmissionDecision } from '#admission/review.ts';
import {
  reviewVirtualMachine,
  reviewVirtualMachineInstance,
  reviewVirtualMachineInstanceMigration,
  reviewVirtualMachineRestore,
  reviewVirtualMachineSnapshot,
  type AdmissionLookup,
} from '#admission/validate.ts';
import { badRequest } from '#kube/api-error.ts';

interface ReviewParts extends MutationParts, EvictionParts {
  readonly lookup: AdmissionLookup;
}

type Reviewer = (request: ReviewRequest, parts: ReviewParts) => AdmissionDecision | Promise<AdmissionDecision>;

const REVIEWERS: ReadonlyMap<string, Reviewer> = new Map<string, Reviewer>([
  ['/mutate-virtualmachines', mutateVirtualMachine],
  ['/mutate-virtualmachineinstances', mutateVirtualMachineInstance],
  ['/mutate-virtualmachineinstancemigrations', mutateVirtualMachineInstanceMigration],
  ['/validate-virtualmachines', (request, { lookup }) => reviewVirtualMachine(request, lookup)],
  ['/validate-virtualmachineinstances', (request, { lookup }) => reviewVirtualMachineInstance(request, lookup)],
  [
    '/validate-virtualmachineinstancemigrations',
    (request, { lookup }) => reviewVirtualMachineInstanceMigration(request, lookup),
  ],
  ['/validate-virtualmachinesnapshots', reviewVirtualMachineSnapshot],
  ['/validate-virtualmachinerestores', (request, { lookup }) => reviewVirtualMachineRestore(request, lookup)],
  // Configurations of older versions use this path until the operator has replaced them; now a policy validates.
  ['/validate-kubevirts', () => ({})],
  ['/validate-protected-deletes', (request, { lookup }) => reviewProtectedDelete(request, lookup)],
  ['/validate-pod-evictions', reviewPodEviction],
]);

/** Throws ApiError if the review is invalid or the path is unknown. */
export async function reviewAdmission(path: string, review: unknown, parts: ReviewParts): Promise<ReviewResponse> {
  const request = parseReview(review);
  if (request === undefined) throw badRequest('expected an AdmissionReview of admission.k8s.io/v1 with a request');
  const reviewer = REVIEWERS.get(path.split('?', 1)[0] ?? '');
  if (reviewer === undefined) throw badRequest(`there is no webhook at ${path}`);
  return buildReviewResponse(request.uid, await reviewer(request, parts));
}
