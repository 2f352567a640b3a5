/** Permissions of each controller, according to the table of writers in ARCHITECTURE.md. */
import { STORAGE_PROFILES } from '#api/storage/storage-profile.ts';
import type { PolicyRule } from '#kube/cluster-kinds.ts';
import {
  CORE,
  identityRule,
  networkDefinitionRule,
  networkRule,
  READ_VERBS,
  READ_NETWORK_RULE,
  READ_SETTINGS_RULE,
  RECORD_EVENTS_RULE,
  policyRule,
  STORAGE,
  vmRule,
  vmSnapshotRule,
  volumeSnapshotRule,
} from '#operator/roles/rules.ts';

export const controllerRoles: Readonly<Record<string, readonly PolicyRule[]>> = {
  'vm-controller': [
    RECORD_EVENTS_RULE,
    READ_SETTINGS_RULE,
    // Writes the machine type at the first start, a missing firmware uuid, and the finalizer.
    vmRule([...READ_VERBS, 'patch'], 'virtualmachines'),
    vmRule(['update'], 'virtualmachines/status'),
    // An owner reference with blockOwnerDeletion requires permission to update the finalizers of the owner.
    vmRule(['update'], 'virtualmachines/finalizers'),
    vmRule([...READ_VERBS, 'create', 'patch', 'delete'], 'virtualmachineinstances'),
    identityRule([...READ_VERBS, 'create', 'patch'], 'virtualmachineidentities'),
    // Records the addresses of the VM.
    READ_NETWORK_RULE,
    // Reports networks without a definition.
    networkDefinitionRule(READ_VERBS),
    policyRule(READ_VERBS, CORE, 'persistentvolumeclaims'),
    // Snapshots and restores hold the VM; a lost record is rebuilt from contents.
    vmSnapshotRule(READ_VERBS, 'virtualmachinesnapshots', 'virtualmachinerestores', 'virtualmachinesnapshotcontents'),
  ],
  'vmi-controller': [
    RECORD_EVENTS_RULE,
    READ_SETTINGS_RULE,
    // Writes the label with the node, and finalizers.
    vmRule([...READ_VERBS, 'patch'], 'virtualmachineinstances'),
    vmRule(['update'], 'virtualmachineinstances/status'),
    // An instance does not start while the guest of an earlier one may be migrating. The status of the VM names the claim
    // of its state, and no disk of a VM is the state of another.
    vmRule(READ_VERBS, 'virtualmachineinstancemigrations', 'virtualmachines'),
    // Owners of pods and of persistent state, with blockOwnerDeletion.
    vmRule(['update'], 'virtualmachines/finalizers', 'virtualmachineinstances/finalizers'),
    policyRule([...READ_VERBS, 'create', 'delete'], CORE, 'pods'),
    policyRule(READ_VERBS, CORE, 'nodes', 'persistentvolumes', 'resourcequotas'),
    // Holds hotplugged claims, which no pod uses, with a finalizer, and selects the node of their volume. Creates the claims
    // of persistent state.
    policyRule([...READ_VERBS, 'create', 'patch'], CORE, 'persistentvolumeclaims'),
    policyRule(READ_VERBS, STORAGE, 'storageclasses'),
    policyRule(['get'], STORAGE_PROFILES.group, STORAGE_PROFILES.plural),
    // Launcher pods name the addresses of their guests.
    READ_NETWORK_RULE,
  ],
  'network-address-controller': [
    RECORD_EVENTS_RULE,
    networkRule(READ_VERBS, 'guestnetworks'),
    networkRule([...READ_VERBS, 'create', 'patch', 'delete'], 'networkaddresses'),
    vmRule(READ_VERBS, 'virtualmachines', 'virtualmachineinstances'),
    policyRule(READ_VERBS, CORE, 'pods'),
  ],
  'migration-controller': [
    RECORD_EVENTS_RULE,
    READ_SETTINGS_RULE,
    // Creates migrations that drain a node; deletes old finished ones.
    vmRule([...READ_VERBS, 'create', 'patch', 'delete'], 'virtualmachineinstancemigrations'),
    vmRule(['update'], 'virtualmachineinstancemigrations/status'),
    vmRule(READ_VERBS, 'virtualmachines', 'virtualmachineinstances'),
    // Writes migrationState, which tells the node agents the source and the target.
    vmRule(['patch'], 'virtualmachineinstances/status'),
    // Owners of the target pod and of persistent state, with blockOwnerDeletion.
    vmRule(['update'], 'virtualmachines/finalizers', 'virtualmachineinstances/finalizers'),
    policyRule([...READ_VERBS, 'create', 'patch', 'delete'], CORE, 'pods', 'persistentvolumeclaims'),
    // Writes the nodes of their data.
    policyRule([...READ_VERBS, 'patch'], CORE, 'persistentvolumes'),
    policyRule(READ_VERBS, CORE, 'nodes', 'resourcequotas'),
  ],
  'storage-controller': [
    RECORD_EVENTS_RULE,
    policyRule([...READ_VERBS, 'create', 'patch', 'delete'], CORE, 'persistentvolumes'),
    policyRule([...READ_VERBS, 'patch'], CORE, 'persistentvolumeclaims'),
    policyRule(['patch'], CORE, 'persistentvolumeclaims/status'),
    policyRule(READ_VERBS, CORE, 'nodes', 'pods'),
    policyRule(READ_VERBS, STORAGE, 'storageclasses'),
    // The sources of new claims.
    volumeSnapshotRule(READ_VERBS, 'volumesnapshots', 'volumesnapshotcontents'),
  ],
  'snapshot-controller': [
    RECORD_EVENTS_RULE,
    vmSnapshotRule([...READ_VERBS, 'patch'], 'virtualmachinesnapshots'),
    vmSnapshotRule([...READ_VERBS, 'create', 'patch', 'delete'], 'virtualmachinesnapshotcontents'),
    vmSnapshotRule(['patch', 'update'], 'virtualmachinesnapshots/status', 'virtualmachinesnapshotcontents/status'),
    vmSnapshotRule(['update'], 'virtualmachinesnapshots/finalizers', 'virtualmachinesnapshotcontents/finalizers'),
    // Contents are kept while a restore needs them.
    vmSnapshotRule(READ_VERBS, 'virtualmachinerestores'),
    // Garbage collection deletes them with their content.
    volumeSnapshotRule([...READ_VERBS, 'create'], 'volumesnapshots'),
    volumeSnapshotRule(READ_VERBS, 'volumesnapshotclasses'),
    vmRule(READ_VERBS, 'virtualmachines', 'virtualmachineinstances'),
    identityRule(READ_VERBS, 'virtualmachineidentities'),
    policyRule(READ_VERBS, CORE, 'persistentvolumeclaims', 'persistentvolumes'),
  ],
  'restore-controller': [
    RECORD_EVENTS_RULE,
    READ_SETTINGS_RULE,
    vmSnapshotRule([...READ_VERBS, 'patch'], 'virtualmachinerestores'),
    vmSnapshotRule(['patch', 'update'], 'virtualmachinerestores/status'),
    vmSnapshotRule(['update'], 'virtualmachinerestores/finalizers'),
    vmSnapshotRule(READ_VERBS, 'virtualmachinesnapshots', 'virtualmachinesnapshotcontents'),
    // Marks the snapshots that it needs, so that they are not deleted.
    volumeSnapshotRule([...READ_VERBS, 'patch'], 'volumesnapshots'),
    vmRule([...READ_VERBS, 'create', 'patch'], 'virtualmachines'),
    vmRule(['update'], 'virtualmachines/finalizers'),
    vmRule(READ_VERBS, 'virtualmachineinstances'),
    // Writes the record of a new VM or of a held VM that does not run; deletes records after a failure.
    identityRule([...READ_VERBS, 'create', 'patch', 'delete'], 'virtualmachineidentities'),
    identityRule(['patch', 'update'], 'virtualmachineidentities/status'),
    policyRule([...READ_VERBS, 'create', 'patch', 'delete'], CORE, 'persistentvolumeclaims'),
    policyRule(READ_VERBS, CORE, 'persistentvolumes'),
    policyRule(READ_VERBS, STORAGE, 'storageclasses'),
  ],
  'volume-snapshot-controller': [
    RECORD_EVENTS_RULE,
    volumeSnapshotRule([...READ_VERBS, 'patch'], 'volumesnapshots'),
    volumeSnapshotRule(['patch', 'update'], 'volumesnapshots/status'),
    volumeSnapshotRule(['update'], 'volumesnapshots/finalizers'),
    volumeSnapshotRule([...READ_VERBS, 'create', 'patch', 'delete'], 'volumesnapshotcontents'),
    volumeSnapshotRule(READ_VERBS, 'volumesnapshotclasses'),
    policyRule(READ_VERBS, CORE, 'persistentvolumeclaims', 'persistentvolumes', 'pods', 'nodes'),
  ],
  'protection-controller': [
    RECORD_EVENTS_RULE,
    vmRule(READ_VERBS, 'virtualmachines'),
    // Writes the annotation with the protected VMs that depend on the object.
    policyRule([...READ_VERBS, 'patch'], CORE, 'namespaces', 'persistentvolumeclaims', 'persistentvolumes'),
    policyRule([...READ_VERBS, 'patch'], 'apiextensions.k8s.io', 'customresourcedefinitions'),
  ],
  'device-map-controller': [
    RECORD_EVENTS_RULE,
    READ_SETTINGS_RULE,
    // The addresses of the node agents.
    policyRule(['get'], CORE, 'nodes'),
    vmRule(READ_VERBS, 'virtualmachines', 'virtualmachineinstances'),
    // The name of the migration that handed persistent state over to another claim.
    vmRule(['list'], 'virtualmachineinstancemigrations'),
    identityRule(READ_VERBS, 'virtualmachineidentities'),
    identityRule(['update'], 'virtualmachineidentities/status'),
    // A lost record is rebuilt from the newest content.
    vmSnapshotRule(READ_VERBS, 'virtualmachinesnapshotcontents'),
  ],
};
