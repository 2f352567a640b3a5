/** The types of stored ValidatingAdmissionPolicies and bindings, which are validated and defaulted. */
import type { MatchResourcesLike } from '#engine/admission/matching/match-resources.ts';
import type { PolicyExpressions } from '#engine/expressions/compile-policy.ts';
import type { LabelSelector } from '#kube/selectors/label-selector.ts';
import type { KubeObject } from '#kube/meta.ts';

export interface PolicySpec extends PolicyExpressions {
  readonly matchConstraints?: MatchResourcesLike;
  readonly failurePolicy?: string;
}

export interface ParamRef {
  readonly name?: string;
  readonly namespace?: string;
  readonly selector?: LabelSelector;
  readonly parameterNotFoundAction?: string;
}

export interface BindingSpec {
  readonly policyName: string;
  readonly paramRef?: ParamRef;
  readonly matchResources?: MatchResourcesLike;
  readonly validationActions: readonly string[];
}

export interface Policy extends KubeObject {
  spec?: PolicySpec;
}

export interface PolicyBinding extends KubeObject {
  spec: BindingSpec;
}

const GROUP = 'admissionregistration.k8s.io';
export const POLICY_COLLECTION = `validatingadmissionpolicies.${GROUP}`;
export const BINDING_COLLECTION = `validatingadmissionpolicybindings.${GROUP}`;
