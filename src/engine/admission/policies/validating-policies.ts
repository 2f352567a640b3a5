/**
 * ValidatingAdmissionPolicies as an admission step: evaluates every matching policy under each of its bindings with
 * each of its parameters. The first denial in the order of names refuses the request.
 */
import type { AdmissionAttributes, ValidatingStep } from '#engine/admission/admission.ts';
import { RequestValues } from '#engine/admission/matching/request-activation.ts';
import { runInSlices, type Units } from '#cel/limits/slices.ts';
import { NAMESPACE_COLLECTION } from '#engine/admission/namespace-lifecycle.ts';
import { namespaceOf } from '#engine/admission/matching/match-resources.ts';
import type { CompiledPolicy } from '#engine/expressions/compile-policy.ts';
import { decide, type PolicyDenial } from '#engine/admission/policies/decide.ts';
import { collectParams } from '#engine/admission/policies/params.ts';
import { PolicyList, type BoundPolicy, type PolicyBindingRule } from '#engine/admission/policies/policy-list.ts';
import { decodeStored } from '#engine/encoding/stored-object.ts';
import type { Authorizer } from '#engine/auth/authorize.ts';
import type { Registry } from '#engine/registry/registry.ts';
import { prepareForms } from '#engine/admission/matching/equivalent-forms.ts';
import type { Resource } from '#engine/registry/resource.ts';
import type { Store } from '#engine/store/store.ts';
import { ApiError, forbidden } from '#kube/api-error.ts';
import type { KubeObject } from '#kube/meta.ts';
import type { Log } from '#lib/log.ts';

interface PolicyParts {
  readonly store: Store;
  readonly registry: Registry;
  readonly authorizer: Authorizer;
  readonly log: Log;
  readonly metrics?: PolicyMetrics;
}

/** Metrics of policy evaluations. */
interface PolicyMetrics {
  recordPolicyDenial(policy: string, binding: string, action: 'deny' | 'warn' | 'audit'): void;
}

interface ValidatingPolicies {
  readonly step: ValidatingStep;
  stop(): void;
}

interface MatchedPolicy {
  readonly policy: BoundPolicy;
  readonly version: Resource;
}

/** A denial and its policy. The binding is undefined if the policy itself cannot be used. */
interface PolicyRefusal {
  readonly policy: string;
  readonly binding: string | undefined;
  readonly denial: PolicyDenial;
}

export function validatingPolicies(parts: PolicyParts): ValidatingPolicies {
  const list = new PolicyList(parts);
  const step: ValidatingStep = (attributes) => {
    const matched: MatchedPolicy[] = [];
    for (const { value, select } of list.candidates(attributes)) {
      const version = select(attributes);
      if (version !== undefined) matched.push({ policy: value, version });
    }
    if (matched.length === 0) return undefined;
    const preparing = prepareForms(attributes, () => matched.map(({ version }) => version));
    return preparing === undefined
      ? decideAll(attributes, matched)
      : preparing.then(() => decideAll(attributes, matched));
  };
  const decideAll = (attributes: AdmissionAttributes, matched: readonly MatchedPolicy[]): void | Promise<void> => {
    const refusals = runInSlices(evaluatePolicies(parts, attributes, matched));
    return refusals instanceof Promise
      ? refusals.then((late) => throwFirst(attributes, late))
      : throwFirst(attributes, refusals);
  };
  return { step, stop: () => list.stop() };
}

function throwFirst(attributes: AdmissionAttributes, refusals: readonly PolicyRefusal[]): void {
  if (refusals.length > 0) throw policyRefusalError(attributes, refusals[0]!);
}

const CODES: Readonly<Record<string, number>> = {
  Forbidden: 403,
  Unauthorized: 401,
  RequestEntityTooLarge: 413,
  Invalid: 422,
};

/** Returns an error with Kubernetes' message: it reads as forbidden, whatever its reason. */
export function policyRefusalError({ resource, name }: AdmissionAttributes, refusal: PolicyRefusal): ApiError {
  const { policy, binding, denial } = refusal;
  const bound = binding === undefined ? '' : ` with binding '${binding}'`;
  const why = `ValidatingAdmissionPolicy '${policy}'${bound} denied request: ${denial.message}`;
  const { message, details } = forbidden(resource, name, why);
  const reason = denial.reason ?? 'Invalid';
  return new ApiError(CODES[reason] ?? 422, reason, message, { details: { ...details, causes: [{ message: why }] } });
}

function* evaluatePolicies(
  parts: PolicyParts,
  attributes: AdmissionAttributes,
  matched: readonly MatchedPolicy[],
): Generator<Units, PolicyRefusal[]> {
  const refusals: PolicyRefusal[] = [];
  for (const { policy, version } of matched) {
    const { policy: compiled, failure } = yield* policy.program.get();
    if (failure !== undefined) {
      refusals.push(...misconfigurationRefusals(policy, undefined, failure));
      continue;
    }
    const values = new RequestValues({
      attributes,
      version,
      authorizer: parts.authorizer,
      namespaceObject: () => namespaceObject(parts.store, attributes),
    });
    const annotations = new Map<string, Set<string>>();
    for (const { value: binding, select } of policy.bindings.candidates(attributes)) {
      yield 0;
      if (select(attributes) === undefined) continue;
      refusals.push(...(yield* evaluateBinding(parts, { policy, compiled, binding, attributes, values, annotations })));
    }
    for (const [key, found] of annotations) attributes.notes.annotate(`${policy.name}/${key}`, [...found].join(', '));
  }
  return refusals;
}

interface BoundEvaluation {
  readonly policy: BoundPolicy;
  readonly compiled: CompiledPolicy;
  readonly binding: PolicyBindingRule;
  readonly attributes: AdmissionAttributes;
  readonly values: RequestValues;
  /** Collects the annotations of all bindings by key. */
  readonly annotations: Map<string, Set<string>>;
}

function* evaluateBinding(parts: PolicyParts, evaluation: BoundEvaluation): Generator<Units, PolicyRefusal[]> {
  const { policy, compiled, binding, attributes, values, annotations } = evaluation;
  const params = collectParams(policy.spec.paramKind, binding.spec.paramRef, namespaceOf(attributes), parts);
  if ('error' in params) return misconfigurationRefusals(policy, binding, params.error);
  const ignoresFailures = policy.spec.failurePolicy === 'Ignore';
  const refusals: PolicyRefusal[] = [];
  for (const one of params) {
    const verdict = yield* decide({ policy: compiled, ignoresFailures, values, params: one });
    for (const denial of verdict.denials) refusals.push(...applyActions(evaluation, denial, parts.metrics));
    for (const denial of verdict.errors) refusals.push({ policy: policy.name, binding: binding.name, denial });
    for (const { key, value } of verdict.annotations) {
      annotations.set(key, (annotations.get(key) ?? new Set<string>()).add(value));
    }
  }
  return refusals;
}

/** Applies the binding's actions to a denial. */
function applyActions(
  { policy, binding, attributes }: BoundEvaluation,
  denial: PolicyDenial,
  metrics: PolicyMetrics | undefined,
): PolicyRefusal[] {
  const { validationActions: actions } = binding.spec;
  const { notes } = attributes;
  const count = (action: 'deny' | 'warn' | 'audit') => metrics?.recordPolicyDenial(policy.name, binding.name, action);
  if (actions.includes('Audit')) {
    count('audit');
    const failure = {
      message: denial.message,
      policy: policy.name,
      binding: binding.name,
      expressionIndex: denial.index,
      validationActions: actions,
    };
    notes.annotate('validation.policy.admission.k8s.io/validation_failure', JSON.stringify([failure]));
  }
  if (actions.includes('Warn')) {
    count('warn');
    const who = `ValidatingAdmissionPolicy '${policy.name}' with binding '${binding.name}'`;
    notes.warn(`Validation failed for ${who}: ${denial.message}`);
  }
  if (actions.includes('Deny')) count('deny');
  return actions.includes('Deny') ? [{ policy: policy.name, binding: binding.name, denial }] : [];
}

function misconfigurationRefusals(
  policy: BoundPolicy,
  binding: PolicyBindingRule | undefined,
  why: string,
): PolicyRefusal[] {
  if (policy.spec.failurePolicy === 'Ignore') return [];
  const what = binding === undefined ? 'policy' : 'binding';
  const denial = { index: 0, message: `failed to configure ${what}: ${why}`, reason: undefined };
  return [{ policy: policy.name, binding: binding?.name, denial }];
}

/** A namespace has no namespaceObject: it is `object` itself. */
function namespaceObject(store: Store, { resource, namespace }: AdmissionAttributes): KubeObject | undefined {
  if (namespace === '' || resource.collection === NAMESPACE_COLLECTION) return undefined;
  const entry = store.latest(NAMESPACE_COLLECTION, namespace);
  return entry && decodeStored(entry.bytes);
}
