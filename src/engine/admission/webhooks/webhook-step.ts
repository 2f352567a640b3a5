/**
 * The common start of mutating and validating webhooks: finds matching webhooks and prepares the object in their
 * versions.
 */
import type { AdmissionAttributes, ValidatingStep } from '#engine/admission/admission.ts';
import type { Candidate } from '#engine/admission/matching/match-index.ts';
import type { IndexedHook } from '#engine/admission/webhooks/hook-list.ts';
import type { InvocationParts } from '#engine/admission/webhooks/invocation.ts';
import { prepareForms } from '#engine/admission/matching/equivalent-forms.ts';

type Begin = (
  parts: InvocationParts,
  candidates: readonly Candidate<IndexedHook>[],
  attributes: AdmissionAttributes,
) => void | Promise<void>;

export function webhookStep(parts: InvocationParts, begin: Begin): ValidatingStep {
  return (attributes) => {
    const candidates = parts.hooks.candidates(attributes);
    // Most requests match nothing, and then there is nothing to wait for.
    if (candidates.length === 0) return;
    const preparing = prepareForms(attributes, () => candidates.map(({ select }) => select(attributes)));
    return preparing === undefined
      ? begin(parts, candidates, attributes)
      : preparing.then(() => begin(parts, candidates, attributes));
  };
}
