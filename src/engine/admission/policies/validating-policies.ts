/**
 * ValidatingAdmissionPolicies as a step of admission: every policy that matches is asked under each of its bindings,
 * with each of its parameters; the first denial in the order of names refuses the request.
 */
import type { AdmissionAttributes, ValidatingStep } from '#engine/admission/admission.ts';
import { RequestValues } from '#engine/admission/expressions/request-activation.ts';
import { inSlices, type Units } from '#engine/admission/expressions/slices.ts';
import { NAMESPACE_COLLECTION } from '#engine/admission/namespace-lifecycle.ts';
import { namespaceOf } from '#engine/admission/matching/match-resources.ts';
import type { CompiledPolicy } from '#engine/admission/policies/compile-policy.ts';
import { decide, type Denial } from '#engine/admission/policies/decide.ts';
import { collectParams } from '#engine/admission/policies/params.ts';
import { PolicyList, type BoundPolicy, type PolicyBindingRule } from '#engine/admission/policies/policy-list.ts';
import { refusalOf } from '#engine/admission/policies/refusal.ts';
import { decodeStored } from '#engine/codec.ts';
import type { Authorizer } from '#engine/auth/authorize.ts';
import type { Registry } from '#engine/registry/registry.ts';
import { prepareForms } from '#engine/conversion/admission-forms.ts';
import type { Resource } from '#engine/registry/resource.ts';
import type { Store } from '#engine/store/store.ts';
import type { KubeObject } from '#kube/meta.ts';
import type { Log } from '#lib/log.ts';

export interface PolicyParts {
  readonly store: Store;
  readonly registry: Registry;
  readonly authorizer: Authorizer;
  readonly log: Log;
  readonly metrics?: PolicyMetrics;
}

/** What /metrics may count. */
export interface PolicyMetrics {
  policyObjected(policy: string, binding: string, action: 'deny' | 'warn' | 'audit'): void;
}

export interface ValidatingPolicies {
  readonly step: ValidatingStep;
  stop(): void;
}

interface AdmissionInput {
  readonly policy: BoundPolicy;
  readonly version: Resource;
}

/** Who said no: the binding is absent where the policy itself cannot be used. */
export interface PolicyRefusal {
  readonly policy: string;
  readonly binding: string | undefined;
  readonly denial: Denial;
}

export function validatingPolicies(parts: PolicyParts): ValidatingPolicies {
  const list = new PolicyList(parts);
  const step: ValidatingStep = (attributes) => {
    const asked: AdmissionInput[] = [];
    for (const { value, select } of list.candidates(attributes)) {
      const version = select(attributes);
      if (version !== undefined) asked.push({ policy: value, version });
    }
    if (asked.length === 0) return undefined;
    const preparing = prepareForms(attributes, () => asked.map(({ version }) => version));
    return preparing === undefined ? decideAll(attributes, asked) : preparing.then(() => decideAll(attributes, asked));
  };
  const decideAll = (attributes: AdmissionAttributes, asked: readonly AdmissionInput[]): void | Promise<void> => {
    const refusals = inSlices(judge(parts, attributes, asked));
    return refusals instanceof Promise
      ? refusals.then((late) => refuse(attributes, late))
      : refuse(attributes, refusals);
  };
  return { step, stop: () => list.stop() };
}

function refuse(attributes: AdmissionAttributes, refusals: readonly PolicyRefusal[]): void {
  if (refusals.length > 0) throw refusalOf(attributes, refusals[0]!);
}

function* judge(
  parts: PolicyParts,
  attributes: AdmissionAttributes,
  asked: readonly AdmissionInput[],
): Generator<Units, PolicyRefusal[]> {
  const refusals: PolicyRefusal[] = [];
  for (const { policy, version } of asked) {
    const { policy: compiled, failure } = yield* policy.program.get();
    if (failure !== undefined) {
      refusals.push(...misconfigured(policy, undefined, failure));
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
      refusals.push(...(yield* judgeBinding(parts, { policy, compiled, binding, attributes, values, annotations })));
    }
    for (const [key, found] of annotations) attributes.notes.annotate(`${policy.name}/${key}`, [...found].join(', '));
  }
  return refusals;
}

interface BoundQuestion {
  readonly policy: BoundPolicy;
  readonly compiled: CompiledPolicy;
  readonly binding: PolicyBindingRule;
  readonly attributes: AdmissionAttributes;
  readonly values: RequestValues;
  /** Gathers what all bindings note under one key. */
  readonly annotations: Map<string, Set<string>>;
}

function* judgeBinding(parts: PolicyParts, question: BoundQuestion): Generator<Units, PolicyRefusal[]> {
  const { policy, compiled, binding, attributes, values, annotations } = question;
  const params = collectParams(policy.spec.paramKind, binding.spec.paramRef, namespaceOf(attributes), parts);
  if ('fault' in params) return misconfigured(policy, binding, params.fault);
  const ignoresFailures = policy.spec.failurePolicy === 'Ignore';
  const refusals: PolicyRefusal[] = [];
  for (const one of params) {
    const verdict = yield* decide({ policy: compiled, ignoresFailures, values, params: one });
    for (const denial of verdict.denials) refusals.push(...act(question, denial, parts.metrics));
    for (const denial of verdict.faults) refusals.push({ policy: policy.name, binding: binding.name, denial });
    for (const { key, value } of verdict.annotations) {
      annotations.set(key, (annotations.get(key) ?? new Set<string>()).add(value));
    }
  }
  return refusals;
}

/** What the binding's actions make of a denial. */
function act(
  { policy, binding, attributes }: BoundQuestion,
  denial: Denial,
  metrics: PolicyMetrics | undefined,
): PolicyRefusal[] {
  const { validationActions: actions } = binding.spec;
  const { notes } = attributes;
  const count = (action: 'deny' | 'warn' | 'audit') => metrics?.policyObjected(policy.name, binding.name, action);
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

function misconfigured(policy: BoundPolicy, binding: PolicyBindingRule | undefined, why: string): PolicyRefusal[] {
  if (policy.spec.failurePolicy === 'Ignore') return [];
  const what = binding === undefined ? 'policy' : 'binding';
  const denial = { index: 0, message: `failed to configure ${what}: ${why}`, reason: undefined };
  return [{ policy: policy.name, binding: binding?.name, denial }];
}

/** A namespace has no namespace: its own object is `object`. */
function namespaceObject(store: Store, { resource, namespace }: AdmissionAttributes): KubeObject | undefined {
  if (namespace === '' || resource.collection === NAMESPACE_COLLECTION) return undefined;
  const entry = store.latest(NAMESPACE_COLLECTION, namespace);
  return entry && decodeStored(entry.bytes);
}
