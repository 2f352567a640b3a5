/** Permissions of our services: the webhook and the aggregated API. */
import type { PolicyRule } from '#operator/kinds.ts';
import { CORE, READ, READ_SETTINGS, rule, vms, vmSnapshots } from '#operator/roles/rules.ts';

export const serviceRoles: Readonly<Record<string, readonly PolicyRule[]>> = {
  // Finds VMs with the same firmware uuid, protected VMs, and unfinished restores.
  'selfsame-webhook': [
    READ_SETTINGS,
    vms(READ, 'virtualmachines'),
    vmSnapshots(READ, 'virtualmachinerestores'),
    // Checks whether an instance can be migrated now.
    vms(['get'], 'virtualmachineinstances'),
    vms(['get', 'list'], 'virtualmachineinstancemigrations'),
    // Finds the guest of an evicted pod, and marks it for evacuation.
    rule(['get'], CORE, 'pods'),
    vms(['get', 'patch'], 'virtualmachineinstances/status'),
  ],
  // The API server has authorized the user; the service then acts on their behalf.
  'selfsame-subresources': [
    vms([...READ, 'patch'], 'virtualmachines', 'virtualmachineinstances'),
    vms(['patch'], 'virtualmachines/status'),
    vms(['create'], 'virtualmachineinstancemigrations'),
    // A forced restart deletes the launcher pod.
    rule([...READ, 'delete'], CORE, 'pods'),
    rule(READ, CORE, 'nodes'),
    // An owner reference with blockOwnerDeletion requires permission to update the finalizers of the owner.
    vms(['update'], 'virtualmachines/finalizers'),
    // Checks whether the user may update the VM whose claims are changed.
    rule(['create'], 'authorization.k8s.io', 'subjectaccessreviews'),
    // Finds the nodes of disks for exports and uploads; writes the owner and the marks of persistent state.
    rule([...READ, 'patch'], CORE, 'persistentvolumeclaims'),
    rule(READ, CORE, 'persistentvolumes'),
  ],
};
