/**
 * Mutating webhooks: called one after the other, each with the result of the previous ones. If a webhook changes the
 * object, earlier webhooks with reinvocationPolicy IfNeeded are called once more.
 *
 *   round 0: every matching webhook ──changed──► round 1: only those to reinvoke, in the same order
 */
import type { AdmissionAttributes, MutatingStep } from '#engine/admission/admission.ts';
import { runInSlices, type Units } from '#cel/limits/slices.ts';
import type { Candidate } from '#engine/admission/matching/match-index.ts';
import { applyWebhookPatch } from '#engine/admission/webhooks/apply-webhook-patch.ts';
import type { Hook } from '#engine/admission/webhooks/hook.ts';
import type { IndexedHook } from '#engine/admission/webhooks/hook-list.ts';
import { selectVersion, invoke, type InvocationParts } from '#engine/admission/webhooks/invocation.ts';
import { webhookStep } from '#engine/admission/webhooks/webhook-step.ts';
import { prepareForms } from '#engine/admission/matching/equivalent-forms.ts';
import type { Resource } from '#engine/registry/resource.ts';

const MUTATION = 'mutation.webhook.admission.k8s.io/';

export const mutatingStep = (parts: InvocationParts): MutatingStep => webhookStep(parts, begin);

function begin(
  parts: InvocationParts,
  candidates: readonly Candidate<IndexedHook>[],
  attributes: AdmissionAttributes,
): void | Promise<void> {
  const first = runInSlices(findFirstMatch(parts, candidates, attributes));
  if (first instanceof Promise) return first.then((late) => late && callInTurn(parts, late, attributes));
  if (first !== undefined) return callInTurn(parts, first, attributes);
}

interface MatchedHooks {
  /** The first candidate matched; the others are not checked yet. */
  readonly candidates: readonly Candidate<IndexedHook>[];
  readonly version: Resource;
}

function* findFirstMatch(
  parts: InvocationParts,
  candidates: readonly Candidate<IndexedHook>[],
  attributes: AdmissionAttributes,
): Generator<Units, MatchedHooks | undefined> {
  for (const [i, candidate] of candidates.entries()) {
    const version = yield* selectVersion(parts, candidate, attributes);
    if (version !== undefined) return { candidates: candidates.slice(i), version };
  }
  return undefined;
}

async function callInTurn(
  parts: InvocationParts,
  { candidates, version: first }: MatchedHooks,
  attributes: AdmissionAttributes,
): Promise<void> {
  const called = new Set<Hook>();
  const reinvoked = new Set<Hook>();
  for (const round of [0, 1]) {
    for (const candidate of candidates) {
      const { hook, index } = candidate.value;
      // A webhook that did not match in the first round is not called in the second.
      if (round === 1 && !reinvoked.has(hook)) continue;
      const isFirst = round === 0 && candidate === candidates[0];
      // A previous webhook may have changed the object.
      if (!isFirst) await prepareForms(attributes, () => [candidate.select(attributes)]);
      const version = isFirst ? first : await runInSlices(selectVersion(parts, candidate, attributes));
      if (version === undefined) continue;
      const place = `round_${round}_index_${index}`;
      const verdict = await invoke(parts, candidate.value, attributes, version, place);
      const mutated = verdict !== undefined && (await applyWebhookPatch(hook.name, verdict.patch, attributes, version));
      const { configuration, name: webhook } = hook;
      attributes.notes.annotate(MUTATION + place, JSON.stringify({ configuration, webhook, mutated }));
      if (mutated && round === 0) {
        for (const earlier of called) reinvoked.add(earlier);
        called.clear();
      }
      if (hook.reinvocable) called.add(hook);
    }
    if (reinvoked.size === 0) return;
  }
}
