/** Permissions of the Job that changes machine types. */
import type { PolicyRule } from '#operator/kinds.ts';
import { CORE, identities, READ, rule, vms } from '#operator/roles/rules.ts';

export const transitionRules: Readonly<Record<'everywhere' | 'inSystemNamespace', readonly PolicyRule[]>> = {
  everywhere: [
    // The default machine type.
    vms(['get', 'list'], 'kubevirts'),
    // Writes the machine type.
    vms([...READ, 'patch'], 'virtualmachines'),
    // Writes machineTypeRestartRequired and the restart request.
    vms(['patch'], 'virtualmachines/status'),
    vms(READ, 'virtualmachineinstances'),
    // Compares the devices of a guest before and after its restart.
    identities(READ, 'virtualmachineidentities'),
    // Resolves aliases of machine types.
    rule(['get', 'list'], CORE, 'nodes'),
  ],
  inSystemNamespace: [
    // Its plan and progress; garbage collection deletes them with the Job.
    rule(['get', 'list', 'create', 'update', 'patch'], CORE, 'configmaps'),
    // Ends its own Job if a retry would fail as well.
    rule(['get', 'patch'], 'batch', 'jobs'),
  ],
};
