/** Mutating and validating webhooks as two steps of the admission chain. */
import type { MutatingStep, ValidatingStep } from '#engine/admission/admission.ts';
import { HookList, type HookListParts } from '#engine/admission/webhooks/hook-list.ts';
import type { WebhookMetrics } from '#engine/admission/webhooks/invocation.ts';
import { mutatingStep } from '#engine/admission/webhooks/mutating-webhooks.ts';
import { validatingStep } from '#engine/admission/webhooks/validating-webhooks.ts';
import type { Authorizer } from '#engine/auth/authorize.ts';

interface AdmissionWebhookParts extends HookListParts {
  /** Evaluates `authorizer` in matchConditions. */
  readonly authorizer: Authorizer;
  readonly metrics?: WebhookMetrics;
}

interface Webhooks {
  /** Runs after all other mutating steps. */
  readonly mutating: MutatingStep;
  /** Runs after all other validating steps. */
  readonly validating: ValidatingStep;
  /** Stops calling webhooks; pending calls end by their own deadline. */
  stop(): void;
}

export function startWebhooks(parts: AdmissionWebhookParts): Webhooks {
  const { authorizer, clock, log, metrics } = parts;
  const mutating = new HookList('mutating', parts);
  const validating = new HookList('validating', parts);
  return {
    mutating: mutatingStep({ kind: 'mutating', hooks: mutating, authorizer, clock, log, metrics }),
    validating: validatingStep({ kind: 'validating', hooks: validating, authorizer, clock, log, metrics }),
    stop() {
      mutating.stop();
      validating.stop();
    },
  };
}
