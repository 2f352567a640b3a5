/** Permissions of each controller, according to the table of writers in ARCHITECTURE.md. */
import { STORAGE_PROFILES } from '#api/storage-profile.ts';
import type { PolicyRule } from '#operator/kinds.ts';
import {
  CORE,
  identities,
  READ,
  READ_SETTINGS,
  RECORD_EVENTS,
  rule,
  STORAGE,
  vms,
  vmSnapshots,
  volumeSnapshots,
} from '#operator/roles/rules.ts';

export const controllerRoles: Readonly<Record<string, readonly PolicyRule[]>> = {
  'vm-controller': [
    RECORD_EVENTS,
    READ_SETTINGS,
    // Writes the machine type at the first start, a missing firmware uuid, and the finalizer.
    vms([...READ, 'patch'], 'virtualmachines'),
    vms(['update'], 'virtualmachines/status'),
    // An owner reference with blockOwnerDeletion requires permission to update the finalizers of the owner.
    vms(['update'], 'virtualmachines/finalizers'),
    vms([...READ, 'create', 'patch', 'delete'], 'virtualmachineinstances'),
    identities([...READ, 'create', 'patch'], 'virtualmachineidentities'),
    rule(READ, CORE, 'persistentvolumeclaims'),
    // Snapshots and restores hold the VM; a lost record is rebuilt from contents.
    vmSnapshots(READ, 'virtualmachinesnapshots', 'virtualmachinerestores', 'virtualmachinesnapshotcontents'),
  ],
  'vmi-controller': [
    RECORD_EVENTS,
    READ_SETTINGS,
    // Writes the label with the node, and finalizers.
    vms([...READ, 'patch'], 'virtualmachineinstances'),
    vms(['update'], 'virtualmachineinstances/status'),
    // An instance does not start while the guest of an earlier one may be migrating.
    vms(READ, 'virtualmachineinstancemigrations'),
    // Owners of pods and of persistent state, with blockOwnerDeletion.
    vms(['update'], 'virtualmachines/finalizers', 'virtualmachineinstances/finalizers'),
    rule([...READ, 'create', 'delete'], CORE, 'pods'),
    rule(READ, CORE, 'nodes', 'persistentvolumes'),
    // Holds hotplugged claims, which no pod uses, with a finalizer, and selects the node of their volume. Creates the claims
    // of persistent state.
    rule([...READ, 'create', 'patch'], CORE, 'persistentvolumeclaims'),
    rule(READ, STORAGE, 'storageclasses'),
    rule(['get'], STORAGE_PROFILES.group, STORAGE_PROFILES.plural),
  ],
  'migration-controller': [
    RECORD_EVENTS,
    READ_SETTINGS,
    // Creates migrations that drain a node; deletes all but the newest finished ones.
    vms([...READ, 'create', 'patch', 'delete'], 'virtualmachineinstancemigrations'),
    vms(['update'], 'virtualmachineinstancemigrations/status'),
    vms(READ, 'virtualmachines', 'virtualmachineinstances'),
    // Writes migrationState, which tells the node agents the source and the target.
    vms(['patch'], 'virtualmachineinstances/status'),
    // Owners of the target pod and of persistent state, with blockOwnerDeletion.
    vms(['update'], 'virtualmachines/finalizers', 'virtualmachineinstances/finalizers'),
    rule([...READ, 'create', 'patch', 'delete'], CORE, 'pods', 'persistentvolumeclaims'),
    // Writes the nodes of their data.
    rule([...READ, 'patch'], CORE, 'persistentvolumes'),
    rule(READ, CORE, 'nodes'),
  ],
  'storage-controller': [
    RECORD_EVENTS,
    rule([...READ, 'create', 'patch', 'delete'], CORE, 'persistentvolumes'),
    rule([...READ, 'patch'], CORE, 'persistentvolumeclaims'),
    rule(['patch'], CORE, 'persistentvolumeclaims/status'),
    rule(READ, CORE, 'nodes', 'pods'),
    rule(READ, STORAGE, 'storageclasses'),
    // The sources of new claims.
    volumeSnapshots(READ, 'volumesnapshots', 'volumesnapshotcontents'),
  ],
  'snapshot-controller': [
    RECORD_EVENTS,
    vmSnapshots([...READ, 'patch'], 'virtualmachinesnapshots'),
    vmSnapshots([...READ, 'create', 'patch', 'delete'], 'virtualmachinesnapshotcontents'),
    vmSnapshots(['patch', 'update'], 'virtualmachinesnapshots/status', 'virtualmachinesnapshotcontents/status'),
    vmSnapshots(['update'], 'virtualmachinesnapshots/finalizers', 'virtualmachinesnapshotcontents/finalizers'),
    // Contents are kept while a restore needs them.
    vmSnapshots(READ, 'virtualmachinerestores'),
    // Garbage collection deletes them with their content.
    volumeSnapshots([...READ, 'create'], 'volumesnapshots'),
    volumeSnapshots(READ, 'volumesnapshotclasses'),
    vms(READ, 'virtualmachines', 'virtualmachineinstances'),
    identities(READ, 'virtualmachineidentities'),
    rule(READ, CORE, 'persistentvolumeclaims', 'persistentvolumes'),
  ],
  'restore-controller': [
    RECORD_EVENTS,
    READ_SETTINGS,
    vmSnapshots([...READ, 'patch'], 'virtualmachinerestores'),
    vmSnapshots(['patch', 'update'], 'virtualmachinerestores/status'),
    vmSnapshots(['update'], 'virtualmachinerestores/finalizers'),
    vmSnapshots(READ, 'virtualmachinesnapshots', 'virtualmachinesnapshotcontents'),
    volumeSnapshots(READ, 'volumesnapshots'),
    vms([...READ, 'create', 'patch'], 'virtualmachines'),
    vms(['update'], 'virtualmachines/finalizers'),
    vms(READ, 'virtualmachineinstances'),
    // Writes the record of a new VM or of a held VM that does not run; deletes records after a failure.
    identities([...READ, 'create', 'patch', 'delete'], 'virtualmachineidentities'),
    identities(['patch', 'update'], 'virtualmachineidentities/status'),
    rule([...READ, 'create', 'patch', 'delete'], CORE, 'persistentvolumeclaims'),
    rule(READ, CORE, 'persistentvolumes'),
    rule(READ, STORAGE, 'storageclasses'),
  ],
  'volume-snapshot-controller': [
    RECORD_EVENTS,
    volumeSnapshots([...READ, 'patch'], 'volumesnapshots'),
    volumeSnapshots(['patch', 'update'], 'volumesnapshots/status'),
    volumeSnapshots(['update'], 'volumesnapshots/finalizers'),
    volumeSnapshots([...READ, 'create', 'patch', 'delete'], 'volumesnapshotcontents'),
    volumeSnapshots(READ, 'volumesnapshotclasses'),
    rule(READ, CORE, 'persistentvolumeclaims', 'persistentvolumes', 'pods', 'nodes'),
  ],
  'protection-controller': [
    RECORD_EVENTS,
    vms(READ, 'virtualmachines'),
    // Writes the annotation with the protected VMs that depend on the object.
    rule([...READ, 'patch'], CORE, 'namespaces', 'persistentvolumeclaims', 'persistentvolumes'),
    rule([...READ, 'patch'], 'apiextensions.k8s.io', 'customresourcedefinitions'),
  ],
  'device-map-controller': [
    RECORD_EVENTS,
    READ_SETTINGS,
    // The addresses of the node agents.
    rule(['get'], CORE, 'nodes'),
    vms(READ, 'virtualmachines', 'virtualmachineinstances'),
    // The name of the migration that handed persistent state over to another claim.
    vms(['list'], 'virtualmachineinstancemigrations'),
    identities(READ, 'virtualmachineidentities'),
    identities(['update'], 'virtualmachineidentities/status'),
    // A lost record is rebuilt from the newest content.
    vmSnapshots(READ, 'virtualmachinesnapshotcontents'),
  ],
};
