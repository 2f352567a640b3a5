/** Validating webhooks: all that match are asked at the same time, all are heard, and the first no in their order counts. */
import type { AdmissionAttributes, ValidatingStep } from '#engine/admission/admission.ts';
import { inSlices, type Units } from '#engine/admission/expressions/slices.ts';
import type { Candidate } from '#engine/admission/matching/match-index.ts';
import type { Placed } from '#engine/admission/webhooks/hook-list.ts';
import { invited, invoke, type InvocationParts } from '#engine/admission/webhooks/invocation.ts';
import { webhookStep } from '#engine/admission/webhooks/webhook-step.ts';
import type { Resource } from '#engine/registry/resource.ts';

interface Invitation {
  readonly placed: Placed;
  readonly version: Resource;
}

export const validatingStep = (parts: InvocationParts): ValidatingStep => webhookStep(parts, begin);

function begin(
  parts: InvocationParts,
  candidates: readonly Candidate<Placed>[],
  attributes: AdmissionAttributes,
): void | Promise<void> {
  const invitations = inSlices(invitationsOf(parts, candidates, attributes));
  if (invitations instanceof Promise) return invitations.then((late) => askAll(parts, late, attributes));
  if (invitations.length > 0) return askAll(parts, invitations, attributes);
}

function* invitationsOf(
  parts: InvocationParts,
  candidates: readonly Candidate<Placed>[],
  attributes: AdmissionAttributes,
): Generator<Units, readonly Invitation[]> {
  const invitations: Invitation[] = [];
  for (const candidate of candidates) {
    const version = yield* invited(parts, candidate, attributes);
    if (version !== undefined) invitations.push({ placed: candidate.value, version });
  }
  return invitations;
}

async function askAll(
  parts: InvocationParts,
  invitations: readonly Invitation[],
  attributes: AdmissionAttributes,
): Promise<void> {
  const calls = invitations.map(({ placed, version }, i) =>
    invoke(parts, placed, attributes, version, `round_0_index_${i}`),
  );
  for (const result of await Promise.allSettled(calls)) if (result.status === 'rejected') throw result.reason;
}
