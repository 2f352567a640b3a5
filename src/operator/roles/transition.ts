/** What the Job may do that changes machine types: an account of its own, for the time of its pod. */
import type { PolicyRule } from '#operator/kinds.ts';
import { CORE, identities, READ, rule, vms } from '#operator/roles/rules.ts';

export const transitionRules: Readonly<Record<'everywhere' | 'inSystemNamespace', readonly PolicyRule[]>> = {
  everywhere: [
    // Which type is the default.
    vms(['get', 'list'], 'kubevirts'),
    // The type itself.
    vms([...READ, 'patch'], 'virtualmachines'),
    // The mark that a VM has to be restarted, machineTypeRestartRequired, and the request that does it.
    vms(['patch'], 'virtualmachines/status'),
    vms(READ, 'virtualmachineinstances'),
    // Whether a guest sees after its restart what it saw before.
    identities(READ, 'virtualmachineidentities'),
    // What an alias stands for today.
    rule(['get', 'list'], CORE, 'nodes'),
  ],
  inSystemNamespace: [
    // Its plan and its progress; they go with the Job, by garbage collection.
    rule(['get', 'list', 'create', 'update', 'patch'], CORE, 'configmaps'),
    // Its own, which it ends where another try would be in vain.
    rule(['get', 'patch'], 'batch', 'jobs'),
  ],
};
