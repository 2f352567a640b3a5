/** One webhook of a configuration, compiled once. */
import {
  compileMatchResources,
  type CompiledMatch,
  type MatchParts,
} from '#engine/admission/matching/match-resources.ts';
import type { RuleLike } from '#engine/admission/matching/rule-patterns.ts';
import type { WebhookClientConfig } from '#engine/registry/webhook-client-config.ts';
import type { AdmissionReviewVersion } from '#engine/admission/webhooks/verdict.ts';
import { Conditions, type MatchConditionLike } from '#engine/expressions/match-conditions.ts';
import type { LabelSelector } from '#kube/selectors/label-selector.ts';

/** A stored webhook, which is validated and defaulted. */
export interface WebhookSpec {
  readonly name: string;
  readonly clientConfig: WebhookClientConfig;
  readonly rules?: readonly RuleLike[];
  readonly failurePolicy?: string;
  readonly matchPolicy?: string;
  readonly namespaceSelector?: LabelSelector;
  readonly objectSelector?: LabelSelector;
  readonly matchConditions?: readonly MatchConditionLike[];
  readonly sideEffects?: string;
  readonly timeoutSeconds?: number;
  readonly admissionReviewVersions?: readonly string[];
  readonly reinvocationPolicy?: string;
}

export interface Hook {
  /** Identifies the webhook and its address. */
  readonly key: string;
  readonly configuration: string;
  readonly name: string;
  readonly clientConfig: WebhookClientConfig;
  readonly ignoresFailures: boolean;
  readonly supportsDryRun: boolean;
  readonly reinvocable: boolean;
  readonly timeoutSeconds: number;
  /** Undefined if no supported version is listed. */
  readonly version: AdmissionReviewVersion | undefined;
  readonly match: CompiledMatch;
  readonly conditions: Conditions;
}

const DEFAULT_TIMEOUT_SECONDS = 10;
const MAX_TIMEOUT_SECONDS = 30;

export function compileHook(configuration: string, spec: WebhookSpec, parts: MatchParts): Hook {
  const { name, clientConfig, rules = [], sideEffects, matchConditions = [] } = spec;
  const { timeoutSeconds = DEFAULT_TIMEOUT_SECONDS, admissionReviewVersions = [] } = spec;
  return {
    key: JSON.stringify([configuration, name, clientConfig.url, clientConfig.service, clientConfig.caBundle]),
    configuration,
    name,
    clientConfig,
    ignoresFailures: spec.failurePolicy === 'Ignore',
    supportsDryRun: sideEffects === 'None' || sideEffects === 'NoneOnDryRun',
    reinvocable: spec.reinvocationPolicy === 'IfNeeded',
    timeoutSeconds: Math.min(timeoutSeconds, MAX_TIMEOUT_SECONDS),
    version: admissionReviewVersions.find(
      (version): version is AdmissionReviewVersion => version === 'v1' || version === 'v1beta1',
    ),
    // A policy without rules matches everything, a webhook without rules nothing.
    match: rules.length === 0 ? NEVER : compileMatchResources({ ...spec, resourceRules: rules }, parts),
    conditions: new Conditions(matchConditions),
  };
}

const NEVER: CompiledMatch = { narrow: () => undefined };
