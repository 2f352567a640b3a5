/** The policy and its binding as the operator installs them; before it knows them, the same from here. */
import { PROTECTION_LABEL, PROTECTION_POLICY } from '#api/delete-protection.ts';
import type { Desired } from '#operator/desired.ts';
import { POLICIES, POLICY_BINDINGS } from '#operator/kinds.ts';
import { installation } from '#operator/objects/installation.ts';

const apiVersion = 'admissionregistration.k8s.io/v1';
const metadata = { name: PROTECTION_POLICY };
const rule = {
  operations: ['DELETE'],
  apiGroups: ['kubevirt.io'],
  apiVersions: ['v1', 'v1alpha3'],
  resources: ['virtualmachines'],
};

const policy = {
  failurePolicy: 'Fail',
  matchConstraints: { resourceRules: [rule] },
  variables: [{ name: 'label', expression: `string('${PROTECTION_LABEL}')` }],
  validations: [
    {
      expression:
        '(!has(oldObject.metadata.labels) || !(variables.label in oldObject.metadata.labels) || ' +
        `!oldObject.metadata.labels[variables.label].matches('^(true|True)$'))`,
      messageExpression:
        `'VirtualMachine ' + string(oldObject.metadata.name) + ' cannot be deleted, disable/remove label ' + ` +
        `"'" + variables.label + "' from VirtualMachine before deleting it"`,
    },
  ],
};

const own: readonly Desired[] = [
  { type: POLICIES, object: { apiVersion, kind: POLICIES.kind, metadata, spec: policy } },
  {
    type: POLICY_BINDINGS,
    object: {
      apiVersion,
      kind: POLICY_BINDINGS.kind,
      metadata,
      spec: { policyName: PROTECTION_POLICY, validationActions: ['Deny'] },
    },
  },
];

const installed = installation.filter(({ object }) => object.metadata.name === PROTECTION_POLICY);
export const protectionPolicy = installed.length > 0 ? installed : own;
