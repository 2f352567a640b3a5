/** The types of stored ValidatingAdmissionPolicies and bindings, which are validated and defaulted. */
import type { MatchResourcesLike } from '#engine/admission/matching/match-resources.ts';
import type { LabelSelector } from '#kube/selectors/label-selector.ts';
import type { KubeObject } from '#kube/meta.ts';

export interface ParamKind {
  readonly apiVersion?: string;
  readonly kind?: string;
}

export interface Validation {
  readonly expression: string;
  readonly message?: string;
  readonly messageExpression?: string;
  readonly reason?: string;
}

export interface PolicySpec {
  readonly paramKind?: ParamKind;
  readonly matchConstraints?: MatchResourcesLike;
  readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
  readonly variables?: readonly { readonly name: string; readonly expression: string }[];
  readonly validations?: readonly Validation[];
  readonly auditAnnotations?: readonly { readonly key: string; readonly valueExpression: string }[];
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
