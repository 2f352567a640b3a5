/** What each controller may do, after the table of who writes what (ARCHITECTURE.md). */
import type { PolicyRule } from '#operator/kinds.ts';
import { CORE, identities, READ, READ_SETTINGS, RECORD_EVENTS, rule, STORAGE, vms } from '#operator/roles/rules.ts';

export const controllerRoles: Readonly<Record<string, readonly PolicyRule[]>> = {
  'vm-controller': [
    RECORD_EVENTS,
    READ_SETTINGS,
    // The machine type of the first start, and its finalizer.
    vms([...READ, 'patch'], 'virtualmachines'),
    vms(['update'], 'virtualmachines/status'),
    // Owners that block their deletion may only be named by who may change their finalizers.
    vms(['update'], 'virtualmachines/finalizers'),
    vms([...READ, 'create', 'patch', 'delete'], 'virtualmachineinstances'),
    identities([...READ, 'create', 'patch'], 'virtualmachineidentities'),
    rule(READ, CORE, 'persistentvolumeclaims'),
  ],
  'vmi-controller': [
    RECORD_EVENTS,
    // The label that names the node, and its finalizers.
    vms([...READ, 'patch'], 'virtualmachineinstances'),
    vms(['update'], 'virtualmachineinstances/status'),
    vms(['update'], 'virtualmachineinstances/finalizers'),
    rule([...READ, 'create', 'delete'], CORE, 'pods'),
    rule(READ, CORE, 'nodes', 'persistentvolumeclaims', 'persistentvolumes'),
  ],
  'storage-controller': [
    RECORD_EVENTS,
    rule([...READ, 'create', 'patch', 'delete'], CORE, 'persistentvolumes'),
    rule([...READ, 'patch'], CORE, 'persistentvolumeclaims'),
    rule(['patch'], CORE, 'persistentvolumeclaims/status'),
    rule(READ, CORE, 'nodes', 'pods'),
    rule(READ, STORAGE, 'storageclasses'),
  ],
  'device-map-controller': [
    RECORD_EVENTS,
    vms(READ, 'virtualmachines', 'virtualmachineinstances'),
    identities(READ, 'virtualmachineidentities'),
    identities(['update'], 'virtualmachineidentities/status'),
  ],
};
