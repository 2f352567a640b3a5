/** What our services may do: the webhook, and the aggregated API. */
import type { PolicyRule } from '#operator/kinds.ts';
import { CORE, READ, READ_SETTINGS, rule, vms, vmSnapshots } from '#operator/roles/rules.ts';

export const serviceRoles: Readonly<Record<string, readonly PolicyRule[]>> = {
  // Beside the settings: who has the same firmware uuid, who is protected, and which restores are not finished.
  'selfsame-webhook': [
    READ_SETTINGS,
    vms(READ, 'virtualmachines'),
    vmSnapshots(READ, 'virtualmachinerestores'),
    // Whether an instance can migrate now.
    vms(['get'], 'virtualmachineinstances'),
    vms(['get', 'list'], 'virtualmachineinstancemigrations'),
    // Which guest a pod that is to be evicted has; the mark that it is to leave its node.
    rule(['get'], CORE, 'pods'),
    vms(['get', 'patch'], 'virtualmachineinstances/status'),
  ],
  // Whoever asks it was allowed to by the API server; it then acts for them.
  'selfsame-subresources': [
    vms([...READ, 'patch'], 'virtualmachines', 'virtualmachineinstances'),
    vms(['patch'], 'virtualmachines/status'),
    vms(['create'], 'virtualmachineinstancemigrations'),
    // A stop with force takes the launcher pod away.
    rule([...READ, 'delete'], CORE, 'pods'),
    rule(READ, CORE, 'nodes'),
    // An owner of a claim that blocks its deletion may only be named by who may change its finalizers.
    vms(['update'], 'virtualmachines/finalizers'),
    // Whether the caller may update the VM whose claims are to change.
    rule(['create'], 'authorization.k8s.io', 'subjectaccessreviews'),
    // Which node has a disk whose content is asked for, and which one gets it; the owner and the marks of persistent state.
    rule([...READ, 'patch'], CORE, 'persistentvolumeclaims'),
    rule(READ, CORE, 'persistentvolumes'),
  ],
};
