/** Permissions of our services: the webhook and the aggregated API. */
import type { PolicyRule } from '#kube/cluster-kinds.ts';
import {
  CORE,
  STORAGE,
  READ_VERBS,
  READ_NETWORK_RULE,
  READ_SETTINGS_RULE,
  policyRule,
  vmRule,
  vmSnapshotRule,
} from '#operator/roles/rules.ts';

export const serviceRoles: Readonly<Record<string, readonly PolicyRule[]>> = {
  // Finds VMs with the same firmware uuid, protected VMs, and unfinished restores.
  'selfsame-webhook': [
    READ_SETTINGS_RULE,
    // Checks the addresses that VMs ask for.
    READ_NETWORK_RULE,
    vmRule(READ_VERBS, 'virtualmachines'),
    vmSnapshotRule(READ_VERBS, 'virtualmachinerestores'),
    // Checks whether an instance can be migrated now.
    vmRule(['get'], 'virtualmachineinstances'),
    vmRule(['get', 'list'], 'virtualmachineinstancemigrations'),
    // Finds the guest of an evicted pod, and marks it for evacuation.
    policyRule(['get'], CORE, 'pods'),
    vmRule(['get', 'patch'], 'virtualmachineinstances/status'),
  ],
  // The API server has authorized the user; the service then acts on their behalf.
  'selfsame-subresources': [
    vmRule([...READ_VERBS, 'patch'], 'virtualmachines', 'virtualmachineinstances'),
    vmRule(['patch'], 'virtualmachines/status'),
    vmRule(['create'], 'virtualmachineinstancemigrations'),
    // A forced restart deletes the launcher pod.
    policyRule([...READ_VERBS, 'delete'], CORE, 'pods'),
    policyRule(READ_VERBS, CORE, 'nodes'),
    // An owner reference with blockOwnerDeletion requires permission to update the finalizers of the owner.
    vmRule(['update'], 'virtualmachines/finalizers'),
    // Checks whether the user may update the VM whose claims are changed.
    policyRule(['create'], 'authorization.k8s.io', 'subjectaccessreviews'),
    // Finds the nodes of disks for exports and uploads; writes the owner and the marks of persistent state.
    policyRule([...READ_VERBS, 'patch'], CORE, 'persistentvolumeclaims'),
    policyRule(READ_VERBS, CORE, 'persistentvolumes'),
    policyRule(READ_VERBS, STORAGE, 'storageclasses'),
  ],
};
