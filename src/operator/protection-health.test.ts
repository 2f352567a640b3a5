/** Tests when the delete protection is reported as available. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KubeVirt } from '#api/kubevirt/kind.ts';
import { applyMergePatch } from '#kube/patches/merge-patch.ts';
import type { Stored } from '#kube/meta.ts';
import { idOf, type PresentObjects } from '#operator/desired.ts';
import { deleteProtectionPolicies } from '#operator/objects/delete-protection.ts';
import { maintainedObjects } from '#operator/objects/installation.ts';
import { protectionHealth } from '#operator/protection-health.ts';
import { installationStatus } from '#operator/status.ts';

const POLICY = 'validatingadmissionpolicies.admissionregistration.k8s.io/kubevirt-vm-deletion-protection';
const BINDING = 'validatingadmissionpolicybindings.admissionregistration.k8s.io/kubevirt-vm-deletion-protection';
const OTHER = 'validatingadmissionpolicies.admissionregistration.k8s.io/selfsame-protected-vms';

/** Returns the objects as the server stores them, changed by merge patches; null removes an object. */
function rules(patches: Readonly<Record<string, object | null>> = {}): PresentObjects {
  return maintainedObjects.map((wanted) => {
    const patch = patches[idOf(wanted)];
    if (patch === null) return [wanted, undefined];
    const identity = { uid: 'u', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' };
    const stored = applyMergePatch(structuredClone(wanted.object), { metadata: identity });
    return [wanted, applyMergePatch(stored, patch ?? {}) as Stored];
  });
}

interface Case {
  readonly present: PresentObjects;
  readonly reason: string;
  readonly message?: string;
}

const cases: Record<string, Case> = {
  'all policies are in place': { present: rules(), reason: 'PoliciesInPlace' },
  'the policy has no type errors': {
    present: rules({ [POLICY]: { status: { typeChecking: {} } } }),
    reason: 'PoliciesInPlace',
  },
  'something else is missing': {
    present: rules({ 'storageclasses.storage.k8s.io/local': null }),
    reason: 'PoliciesInPlace',
  },
  'labels of other users are ignored': {
    present: rules({ [BINDING]: { metadata: { labels: { team: 'blue' } } } }),
    reason: 'PoliciesInPlace',
  },
  'the policy is missing': {
    present: rules({ [POLICY]: null }),
    reason: 'PolicyMissing',
    message: `${POLICY} is missing`,
  },
  'the binding is missing': {
    present: rules({ [BINDING]: null }),
    reason: 'PolicyMissing',
    message: `${BINDING} is missing`,
  },
  'the binding only warns': {
    present: rules({ [BINDING]: { spec: { validationActions: ['Warn'] } } }),
    reason: 'PolicyChanged',
    message: `${BINDING} differs from its desired state`,
  },
  'the binding excludes resources': {
    present: rules({ [BINDING]: { spec: { matchResources: { excludeResourceRules: [{ resources: ['*'] }] } } } }),
    reason: 'PolicyChanged',
    message: `${BINDING} differs from its desired state`,
  },
  'the binding has a parameter': {
    present: rules({ [BINDING]: { spec: { paramRef: { name: 'x', parameterNotFoundAction: 'Allow' } } } }),
    reason: 'PolicyChanged',
    message: `${BINDING} differs from its desired state`,
  },
  'the policy fails open': {
    present: rules({ [POLICY]: { spec: { failurePolicy: 'Ignore' } } }),
    reason: 'PolicyChanged',
    message: `${POLICY} differs from its desired state`,
  },
  'the policy is being deleted': {
    present: rules({ [POLICY]: { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } } }),
    reason: 'PolicyBeingDeleted',
    message: `${POLICY} is being deleted`,
  },
  'the policy has type errors': {
    present: rules({
      [POLICY]: { status: { typeChecking: { expressionWarnings: [{ fieldRef: 'a', warning: 'b' }] } } },
    }),
    reason: 'PolicyHasTypeErrors',
    message: `${POLICY} has expressions with type errors`,
  },
  'several objects have problems': {
    present: rules({ [BINDING]: null, [OTHER]: { spec: { validations: [] } } }),
    reason: 'PolicyMissing',
    message: `${BINDING} is missing; ${OTHER} differs from its desired state`,
  },
};

for (const [name, { present, reason, message = 'Protected VirtualMachines cannot be deleted.' }] of Object.entries(
  cases,
)) {
  test(name, () => {
    const isAvailable = reason === 'PoliciesInPlace';
    assert.deepEqual(protectionHealth('served', present), { isAvailable, reason, message });
  });
}

test('unknown policies count as missing', () => {
  const { isAvailable, reason, message } = protectionHealth('served', []);
  assert.deepEqual([isAvailable, reason], [false, 'PolicyMissing']);
  assert.equal(deleteProtectionPolicies.length, 18);
  assert.match(message, /and 13 more$/);
});

test('a cluster without policies lacks only the delete protection', () => {
  const metadata = { name: 'kubevirt', uid: 'u', resourceVersion: '1', creationTimestamp: '' };
  const kubevirt: Stored<KubeVirt> = { apiVersion: 'kubevirt.io/v1', kind: 'KubeVirt', metadata };
  const status = installationStatus({ kubevirt, present: [], policies: 'missing', failures: [], now: '' });
  assert.deepEqual(
    status?.conditions?.map(({ type, status: holds, reason }) => `${type}=${holds} ${reason}`),
    [
      'Available=True AllComponentsReady',
      'Progressing=False AllComponentsReady',
      'Degraded=False AllComponentsReady',
      'DeleteProtectionAvailable=False KubernetesTooOld',
    ],
  );
  const message = status.conditions?.at(-1)?.message ?? '';
  for (const word of ['1.30', 'delete protection', 'nodes', 'firmware uuids']) assert.ok(message.includes(word), word);
});
