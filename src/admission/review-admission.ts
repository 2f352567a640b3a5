/**
 * The webhook as a function of path, review and lookup. The server, in this process or over HTTPS, provides the lookup. The
 * paths are those of the webhook configurations (operator/objects/).
 */
import {
  mutateVirtualMachine,
  mutateVirtualMachineInstance,
  mutateVirtualMachineInstanceMigration,
  type MutationParts,
} from '#admission/mutate.ts';
import { reviewPodEviction, type EvictionParts } from '#admission/pod-evictions.ts';
import { reviewProtectedDelete } from '#admission/protected-deletes.ts';
import { readRequest, reviewOf } from '#admission/review.ts';
import type { AdmissionRequest, AdmissionReview, Answer } from '#admission/review.ts';
import {
  reviewVirtualMachine,
  reviewVirtualMachineInstance,
  reviewVirtualMachineInstanceMigration,
  reviewVirtualMachineRestore,
  reviewVirtualMachineSnapshot,
  type Lookup,
} from '#admission/validate.ts';
import { badRequest } from '#kube/api-error.ts';

export interface AdmissionParts extends MutationParts, EvictionParts {
  readonly lookup: Lookup;
}

type Reviewer = (request: AdmissionRequest, parts: AdmissionParts) => Answer | Promise<Answer>;

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
export async function reviewAdmission(path: string, review: unknown, parts: AdmissionParts): Promise<AdmissionReview> {
  const request = readRequest(review);
  if (request === undefined) throw badRequest('expected an AdmissionReview of admission.k8s.io/v1 with a request');
  const reviewer = REVIEWERS.get(path.split('?', 1)[0] ?? '');
  if (reviewer === undefined) throw badRequest(`there is no webhook at ${path}`);
  return reviewOf(request.uid, await reviewer(request, parts));
}
