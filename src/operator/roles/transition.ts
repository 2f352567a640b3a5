/** Permissions of the Job that changes machine types. */
import type { PolicyRule } from '#kube/cluster-kinds.ts';
import { CORE, identityRule, READ_VERBS, policyRule, vmRule } from '#operator/roles/rules.ts';

export const transitionRules: Readonly<Record<'everywhere' | 'inSystemNamespace', readonly PolicyRule[]>> = {
  everywhere: [
    // The default machine type.
    vmRule(['get', 'list'], 'kubevirts'),
    // Writes the machine type.
    vmRule([...READ_VERBS, 'patch'], 'virtualmachines'),
    // Writes machineTypeRestartRequired and the restart request.
    vmRule(['patch'], 'virtualmachines/status'),
    vmRule(READ_VERBS, 'virtualmachineinstances'),
    // Compares the devices of a guest before and after its restart.
    identityRule(READ_VERBS, 'virtualmachineidentities'),
    // Resolves aliases of machine types.
    policyRule(['get', 'list'], CORE, 'nodes'),
  ],
  inSystemNamespace: [
    // Its plan and progress; garbage collection deletes them with the Job.
    policyRule(['get', 'list', 'create', 'update', 'patch'], CORE, 'configmaps'),
    // Ends its own Job if a retry would fail as well.
    policyRule(['get', 'patch'], 'batch', 'jobs'),
  ],
};
