/** Validating webhooks: calls all that match concurrently and waits for all; the first denial in their order counts. */
import type { AdmissionAttributes, ValidatingStep } from '#engine/admission/admission.ts';
import { runInSlices, type Units } from '#cel/limits/slices.ts';
import type { Candidate } from '#engine/admission/matching/match-index.ts';
import type { IndexedHook } from '#engine/admission/webhooks/hook-list.ts';
import { selectVersion, invoke, type InvocationParts } from '#engine/admission/webhooks/invocation.ts';
import { webhookStep } from '#engine/admission/webhooks/webhook-step.ts';
import type { Resource } from '#engine/registry/resource.ts';

interface MatchedHook {
  readonly placed: IndexedHook;
  readonly version: Resource;
}

export const validatingStep = (parts: InvocationParts): ValidatingStep => webhookStep(parts, begin);

function begin(
  parts: InvocationParts,
  candidates: readonly Candidate<IndexedHook>[],
  attributes: AdmissionAttributes,
): void | Promise<void> {
  const invitations = runInSlices(matchHooks(parts, candidates, attributes));
  if (invitations instanceof Promise) return invitations.then((late) => callAll(parts, late, attributes));
  if (invitations.length > 0) return callAll(parts, invitations, attributes);
}

function* matchHooks(
  parts: InvocationParts,
  candidates: readonly Candidate<IndexedHook>[],
  attributes: AdmissionAttributes,
): Generator<Units, readonly MatchedHook[]> {
  const invitations: MatchedHook[] = [];
  for (const candidate of candidates) {
    const version = yield* selectVersion(parts, candidate, attributes);
    if (version !== undefined) invitations.push({ placed: candidate.value, version });
  }
  return invitations;
}

async function callAll(
  parts: InvocationParts,
  invitations: readonly MatchedHook[],
  attributes: AdmissionAttributes,
): Promise<void> {
  const calls = invitations.map(({ placed, version }, i) =>
    invoke(parts, placed, attributes, version, `round_0_index_${i}`),
  );
  for (const result of await Promise.allSettled(calls)) if (result.status === 'rejected') throw result.reason;
}
