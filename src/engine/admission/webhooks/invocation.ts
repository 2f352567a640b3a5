/**
 * Calls one webhook for one request: decides whether to call it, records warnings and annotations, and handles
 * failures.
 */
import type { AdmissionAttributes } from '#engine/admission/admission.ts';
import { RequestValues } from '#engine/admission/matching/request-activation.ts';
import type { Units } from '#cel/limits/slices.ts';
import type { Candidate } from '#engine/admission/matching/match-index.ts';
import { CallCanceled, CallFailure } from '#engine/remote/webhooks/call-failure.ts';
import type { HookList, IndexedHook, WebhookKind } from '#engine/admission/webhooks/hook-list.ts';
import { deniedError, dryRunUnsupportedError, failedCallError } from '#engine/admission/webhooks/webhook-errors.ts';
import type { WebhookVerdict } from '#engine/admission/webhooks/verdict.ts';
import { evaluateConditions } from '#engine/expressions/match-conditions.ts';
import type { Authorizer } from '#engine/auth/authorize.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { forbidden, timeout } from '#kube/api-error.ts';
import { labelKeyErrors } from '#kube/names.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';

type CallOutcome = 'allowed' | 'denied' | 'failed' | 'ignored';

/** Metrics of webhook calls. The configurations bound the names of webhooks. */
export interface WebhookMetrics {
  recordWebhookCall(kind: WebhookKind, name: string, outcome: CallOutcome, seconds: number): void;
}

export interface InvocationParts {
  readonly kind: WebhookKind;
  readonly hooks: HookList;
  readonly authorizer: Authorizer;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics?: WebhookMetrics | undefined;
}

/**
 * Returns the version in which the webhook is called, or undefined if it is not. Throws if its conditions fail closed.
 * Conditions may be expensive: for slices.ts.
 */
export function* selectVersion(
  { authorizer, log }: InvocationParts,
  { value: { hook }, select }: Candidate<IndexedHook>,
  attributes: AdmissionAttributes,
): Generator<Units, Resource | undefined> {
  const version = select(attributes);
  if (version === undefined || hook.conditions.isEmpty) return version;
  const values = new RequestValues({ attributes, version, authorizer, namespaceObject: () => undefined });
  const result = yield* evaluateConditions(hook.conditions, values.activation());
  if (typeof result === 'boolean') return result ? version : undefined;
  log.warn(
    { webhook: hook.name, configuration: hook.configuration, reason: result.failure },
    'Webhook matchConditions failed',
  );
  if (hook.ignoresFailures) return undefined;
  throw forbidden(attributes.resource, attributes.name, result.failure);
}

/** Kubernetes' audit annotations for webhooks that failed open. */
const FAILED_OPEN = {
  mutating: 'failed-open.mutation.webhook.admission.k8s.io/',
  validating: 'failed-open.validating.webhook.admission.k8s.io/',
} as const;

/**
 * Returns the verdict of a webhook that allows the request, or undefined if it failed open. Throws the ApiError that
 * refuses the request. `place` is `round_0_index_2`.
 */
export async function invoke(
  { kind, hooks, clock, log, metrics }: InvocationParts,
  { hook }: IndexedHook,
  attributes: AdmissionAttributes,
  version: Resource,
  place: string,
): Promise<WebhookVerdict | undefined> {
  if (attributes.dryRun && !hook.supportsDryRun) throw dryRunUnsupportedError(hook.name);
  const started = clock.now();
  const count = (outcome: CallOutcome) =>
    metrics?.recordWebhookCall(kind, hook.name, outcome, (clock.now() - started) / 1000);
  let verdict: WebhookVerdict;
  try {
    verdict = await hooks.clients.of(hook).call(hook, attributes, version, kind === 'mutating');
  } catch (error) {
    if (!(error instanceof CallFailure)) throw error;
    if (error.cause instanceof CallCanceled || attributes.signal.aborted) {
      throw timeout('request did not complete within requested timeout', 0);
    }
    count(hook.ignoresFailures ? 'ignored' : 'failed');
    const fields = { webhook: hook.name, configuration: hook.configuration, reason: error.message };
    log.warn(fields, hook.ignoresFailures ? 'Webhook failed; continuing without it' : 'Webhook failed');
    if (!hook.ignoresFailures) throw failedCallError(hook.name, error.message, error);
    attributes.notes.annotate(FAILED_OPEN[kind] + place, hook.name);
    return undefined;
  }
  recordNotes(hook.name, verdict, attributes, log);
  count(verdict.allowed ? 'allowed' : 'denied');
  if (!verdict.allowed) throw deniedError(hook.name, verdict);
  return verdict;
}

/** Bounds the work for one response. RequestNotes limits how many of them are kept. */
const MAX_NOTES = 100;

function recordNotes(webhook: string, verdict: WebhookVerdict, { notes }: AdmissionAttributes, log: Log): void {
  for (const warning of verdict.warnings.slice(0, MAX_NOTES)) notes.warn(warning);
  let unusable = 0;
  for (const [key, value] of [...verdict.auditAnnotations].slice(0, MAX_NOTES)) {
    const full = `${webhook}/${key}`;
    if (labelKeyErrors(full).length === 0) notes.annotate(full, value);
    else unusable++;
  }
  if (unusable > 0) log.warn({ webhook, unusable }, 'Webhook sent audit annotations with invalid keys');
}
