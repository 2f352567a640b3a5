/** Tests the text of the policies; test/planes/delete-protection-policies.test.ts tests their effect. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deleteProtectionPolicies } from '#operator/objects/delete-protection.ts';

const [policy, binding] = deleteProtectionPolicies.map(({ object }) => object);

test("the policy of VMs is identical to KubeVirt's", () => {
  assert.equal(policy?.kind, 'ValidatingAdmissionPolicy');
  assert.equal(policy.apiVersion, 'admissionregistration.k8s.io/v1');
  assert.equal(policy.metadata.name, 'kubevirt-vm-deletion-protection');
  const { labels = {} } = policy.metadata;
  assert.equal(labels['app.kubernetes.io/name'], 'vm-delete-protection');
  assert.equal(labels['app.kubernetes.io/component'], 'vmDeleteProtection');
  const { failurePolicy, matchConstraints, matchConditions, variables, validations, paramKind } = policy[
    'spec'
  ] as Record<string, unknown>;
  assert.deepEqual(
    { failurePolicy, matchConditions, paramKind },
    {
      failurePolicy: 'Fail',
      matchConditions: [],
      paramKind: null,
    },
  );
  assert.deepEqual((matchConstraints as { resourceRules: unknown }).resourceRules, [
    {
      operations: ['DELETE'],
      apiGroups: ['kubevirt.io'],
      apiVersions: ['v1', 'v1alpha3'],
      resources: ['virtualmachines'],
      scope: '*',
    },
  ]);
  assert.deepEqual(variables, [{ name: 'label', expression: "string('kubevirt.io/vm-delete-protection')" }]);
  const [{ expression = '', ...rest } = {}] = validations as Record<string, string>[];
  assert.equal(
    expression,
    "(!has(oldObject.metadata.labels) || !(variables.label in oldObject.metadata.labels) || !oldObject.metadata.labels[variables.label].matches('^(true|True)$'))",
  );
  // Without a reason the server reports Invalid.
  assert.deepEqual(Object.keys(rest), ['messageExpression']);
});

test('its binding has the same name and denies everywhere', () => {
  assert.equal(binding?.kind, 'ValidatingAdmissionPolicyBinding');
  assert.equal(binding.metadata.name, 'kubevirt-vm-deletion-protection');
  const spec = binding['spec'] as Record<string, unknown>;
  assert.equal(spec['policyName'], 'kubevirt-vm-deletion-protection');
  assert.deepEqual(spec['validationActions'], ['Deny']);
});
