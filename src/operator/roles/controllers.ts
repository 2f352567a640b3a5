/** What each controller may do, after the table of who writes what (ARCHITECTURE.md). */
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
    // The machine type of the first start, a firmware uuid where there is none, and its finalizer.
    vms([...READ, 'patch'], 'virtualmachines'),
    vms(['update'], 'virtualmachines/status'),
    // Owners that block their deletion may only be named by who may change their finalizers.
    vms(['update'], 'virtualmachines/finalizers'),
    vms([...READ, 'create', 'patch', 'delete'], 'virtualmachineinstances'),
    identities([...READ, 'create', 'patch'], 'virtualmachineidentities'),
    rule(READ, CORE, 'persistentvolumeclaims'),
    // Who holds the VM, and what a lost record is rebuilt from.
    vmSnapshots(READ, 'virtualmachinesnapshots', 'virtualmachinerestores', 'virtualmachinesnapshotcontents'),
  ],
  'vmi-controller': [
    RECORD_EVENTS,
    READ_SETTINGS,
    // The label that names the node, and its finalizers.
    vms([...READ, 'patch'], 'virtualmachineinstances'),
    vms(['update'], 'virtualmachineinstances/status'),
    // An instance does not start while the guest of an earlier one may be on its way.
    vms(READ, 'virtualmachineinstancemigrations'),
    // Owners of pods and of persistent state, which block their deletion.
    vms(['update'], 'virtualmachines/finalizers', 'virtualmachineinstances/finalizers'),
    rule([...READ, 'create', 'delete'], CORE, 'pods'),
    rule(READ, CORE, 'nodes', 'persistentvolumes'),
    // Claims that no pod names, because they were plugged in later: held while they are, and bound to where they are.
    // Made are those of persistent state.
    rule([...READ, 'create', 'patch'], CORE, 'persistentvolumeclaims'),
    rule(READ, STORAGE, 'storageclasses'),
    rule(['get'], STORAGE_PROFILES.group, STORAGE_PROFILES.plural),
  ],
  'migration-controller': [
    RECORD_EVENTS,
    READ_SETTINGS,
    // Made are those that empty a node; of finished ones only the newest stay.
    vms([...READ, 'create', 'patch', 'delete'], 'virtualmachineinstancemigrations'),
    vms(['update'], 'virtualmachineinstancemigrations/status'),
    vms(READ, 'virtualmachines', 'virtualmachineinstances'),
    // Where the guest goes: by it the agents are told.
    vms(['patch'], 'virtualmachineinstances/status'),
    // Owners of the target's pod and of persistent state, which block their deletion.
    vms(['update'], 'virtualmachines/finalizers', 'virtualmachineinstances/finalizers'),
    rule([...READ, 'create', 'patch', 'delete'], CORE, 'pods', 'persistentvolumeclaims'),
    // Where their data is, and is to be.
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
    // What a claim is to be filled from.
    volumeSnapshots(READ, 'volumesnapshots', 'volumesnapshotcontents'),
  ],
  'snapshot-controller': [
    RECORD_EVENTS,
    vmSnapshots([...READ, 'patch'], 'virtualmachinesnapshots'),
    vmSnapshots([...READ, 'create', 'patch', 'delete'], 'virtualmachinesnapshotcontents'),
    vmSnapshots(['patch', 'update'], 'virtualmachinesnapshots/status', 'virtualmachinesnapshotcontents/status'),
    vmSnapshots(['update'], 'virtualmachinesnapshots/finalizers', 'virtualmachinesnapshotcontents/finalizers'),
    // Contents that a restore still needs stay.
    vmSnapshots(READ, 'virtualmachinerestores'),
    // They go with their content, by garbage collection.
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
    // Of a VM that is made, or held and does not run; what was made in vain goes.
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
    // The mark that says which protected VMs would be lost with them.
    rule([...READ, 'patch'], CORE, 'namespaces', 'persistentvolumeclaims', 'persistentvolumes'),
    rule([...READ, 'patch'], 'apiextensions.k8s.io', 'customresourcedefinitions'),
  ],
  'device-map-controller': [
    RECORD_EVENTS,
    READ_SETTINGS,
    // Where their agents listen.
    rule(['get'], CORE, 'nodes'),
    vms(READ, 'virtualmachines', 'virtualmachineinstances'),
    // The name of the migration that has handed the state of a VM over to another claim.
    vms(['list'], 'virtualmachineinstancemigrations'),
    identities(READ, 'virtualmachineidentities'),
    identities(['update'], 'virtualmachineidentities/status'),
    // A lost record is rebuilt from the newest.
    vmSnapshots(READ, 'virtualmachinesnapshotcontents'),
  ],
};
