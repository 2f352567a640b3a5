/**
 * What nodes may do with our kinds, beside what every node may. The role is one for all nodes; which instances and
 * volumes are whose is told by the policy selfsame-node-restriction.
 */
import type { PolicyRule } from '#operator/kinds.ts';
import { CORE, identities, READ, RECORD_EVENTS, rule, vms } from '#operator/roles/rules.ts';

export const NODE_GROUP = 'system:nodes';

export const nodeRules: readonly PolicyRule[] = [
  RECORD_EVENTS,
  vms(READ, 'virtualmachineinstances'),
  vms(['patch', 'update'], 'virtualmachineinstances/status'),
  identities(['get'], 'virtualmachineidentities'),
  // The finalizer that stands for the data.
  rule([...READ, 'patch'], CORE, 'persistentvolumes'),
  rule(['patch'], CORE, 'persistentvolumeclaims/status'),
];
