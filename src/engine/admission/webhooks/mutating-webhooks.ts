/**
 * Mutating webhooks: one after the other, each on what the ones before it made. When one changes the object, those
 * with reinvocationPolicy IfNeeded that were asked before it are asked once more.
 *
 *   round 0: every webhook that matches ──changed──► round 1: only those marked, in the same order
 */
import type { AdmissionAttributes, MutatingStep } from '#engine/admission/admission.ts';
import { inSlices, type Units } from '#engine/admission/expressions/slices.ts';
import type { Candidate } from '#engine/admission/matching/match-index.ts';
import { applyWebhookPatch } from '#engine/admission/webhooks/apply-webhook-patch.ts';
import type { Hook } from '#engine/admission/webhooks/hook.ts';
import type { Placed } from '#engine/admission/webhooks/hook-list.ts';
import { invited, invoke, type InvocationParts } from '#engine/admission/webhooks/invocation.ts';
import { webhookStep } from '#engine/admission/webhooks/webhook-step.ts';
import { prepareForms } from '#engine/conversion/admission-forms.ts';
import type { Resource } from '#engine/registry/resource.ts';

const MUTATION = 'mutation.webhook.admission.k8s.io/';

export const mutatingStep = (parts: InvocationParts): MutatingStep => webhookStep(parts, begin);

function begin(
  parts: InvocationParts,
  candidates: readonly Candidate<Placed>[],
  attributes: AdmissionAttributes,
): void | Promise<void> {
  const first = inSlices(firstInvited(parts, candidates, attributes));
  if (first instanceof Promise) return first.then((late) => late && askInTurn(parts, late, attributes));
  if (first !== undefined) return askInTurn(parts, first, attributes);
}

interface Invitations {
  /** The first of them is invited, the others are still to be looked at. */
  readonly candidates: readonly Candidate<Placed>[];
  readonly version: Resource;
}

function* firstInvited(
  parts: InvocationParts,
  candidates: readonly Candidate<Placed>[],
  attributes: AdmissionAttributes,
): Generator<Units, Invitations | undefined> {
  for (const [i, candidate] of candidates.entries()) {
    const version = yield* invited(parts, candidate, attributes);
    if (version !== undefined) return { candidates: candidates.slice(i), version };
  }
  return undefined;
}

async function askInTurn(
  parts: InvocationParts,
  { candidates, version: first }: Invitations,
  attributes: AdmissionAttributes,
): Promise<void> {
  const asked = new Set<Hook>();
  const again = new Set<Hook>();
  for (const round of [0, 1]) {
    for (const candidate of candidates) {
      const { hook, index } = candidate.value;
      // One that did not match in the first round is not asked in the second, even if it would match by now.
      if (round === 1 && !again.has(hook)) continue;
      const isFirst = round === 0 && candidate === candidates[0];
      // One before it may have changed the object.
      if (!isFirst) await prepareForms(attributes, () => [candidate.select(attributes)]);
      const version = isFirst ? first : await inSlices(invited(parts, candidate, attributes));
      if (version === undefined) continue;
      const place = `round_${round}_index_${index}`;
      const verdict = await invoke(parts, candidate.value, attributes, version, place);
      const mutated = verdict !== undefined && (await applyWebhookPatch(hook.name, verdict.patch, attributes, version));
      const { configuration, name: webhook } = hook;
      attributes.notes.annotate(MUTATION + place, JSON.stringify({ configuration, webhook, mutated }));
      if (mutated && round === 0) {
        for (const earlier of asked) again.add(earlier);
        asked.clear();
      }
      if (hook.reinvocable) asked.add(hook);
    }
    if (again.size === 0) return;
  }
}
