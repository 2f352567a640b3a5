/** What each controller may do, after the table of who writes what (ARCHITECTURE.md). */
import type { PolicyRule } from '#operator/kinds.ts';
import { CORE, identities, READ, READ_SETTINGS, RECORD_EVENTS, rule, STORAGE, vms } from '#operator/roles/rules.ts';

export const controllerRoles: Readonly<Record<string, readonly PolicyRule[]>> = {
  'vm-controller': [
    RECORD_EVENTS,
    READ_SETTINGS,
    // The machine type of the first start, and its finalizer.
    vms([...READ, 'patch', 'update'], 'virtualmachines'),
    vms(['patch', 'update'], 'virtualmachines/status'),
    // Owners that block their deletion may only be named by who may change their finalizers.
    vms(['update'], 'virtualmachines/finalizers'),
    vms([...READ, 'create', 'patch', 'update', 'delete'], 'virtualmachineinstances'),
    identities([...READ, 'create', 'patch', 'update'], 'virtualmachineidentities'),
    rule(READ, CORE, 'pods', 'persistentvolumeclaims'),
  ],
  'vmi-controller': [
    RECORD_EVENTS,
    READ_SETTINGS,
    vms(READ, 'virtualmachines'),
    // The label that names the node, and its finalizers.
    vms([...READ, 'patch', 'update'], 'virtualmachineinstances'),
    vms(['patch', 'update'], 'virtualmachineinstances/status'),
    vms(['update'], 'virtualmachineinstances/finalizers'),
    rule([...READ, 'create', 'patch', 'delete'], CORE, 'pods'),
    rule(READ, CORE, 'nodes', 'persistentvolumeclaims', 'persistentvolumes'),
    rule(READ, STORAGE, 'storageclasses'),
  ],
  'storage-controller': [
    RECORD_EVENTS,
    rule([...READ, 'create', 'patch', 'update', 'delete'], CORE, 'persistentvolumes'),
    rule([...READ, 'patch', 'update'], CORE, 'persistentvolumeclaims'),
    rule(['patch', 'update'], CORE, 'persistentvolumes/status', 'persistentvolumeclaims/status'),
    rule(READ, CORE, 'nodes', 'pods'),
    rule(READ, STORAGE, 'storageclasses'),
  ],
  'device-map-controller': [
    RECORD_EVENTS,
    vms(READ, 'virtualmachines', 'virtualmachineinstances'),
    identities(READ, 'virtualmachineidentities'),
    identities(['patch', 'update'], 'virtualmachineidentities/status'),
  ],
};
