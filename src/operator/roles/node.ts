/**
 * What nodes may do with our kinds, beside what every node may. The role is one for all nodes; which instances,
 * volumes and snapshots are whose is told by the policies selfsame-node-… (objects/node-policies.ts).
 */
import { AGENT_CERTIFICATES } from '#api/agent-certificate.ts';
import { SUBRESOURCES_GROUP } from '#api/names.ts';
import type { PolicyRule } from '#operator/kinds.ts';
import { CORE, identities, READ, RECORD_EVENTS, rule, vms, volumeSnapshots } from '#operator/roles/rules.ts';

export const nodeRules: readonly PolicyRule[] = [
  RECORD_EVENTS,
  vms(READ, 'virtualmachineinstances'),
  vms(['patch', 'update'], 'virtualmachineinstances/status'),
  identities(['get'], 'virtualmachineidentities'),
  // Where the agents of other nodes listen, to which guests go.
  rule(['get'], CORE, 'nodes'),
  // By which our other parts know it.
  rule(['create'], SUBRESOURCES_GROUP, AGENT_CERTIFICATES),
  // By which the API server knows it: the next one like its own, and only that, is approved by the cluster itself.
  rule(['create', 'get'], 'certificates.k8s.io', 'certificatesigningrequests'),
  rule(['create'], 'certificates.k8s.io', 'certificatesigningrequests/selfnodeclient'),
  // The finalizers that stand for the data.
  rule([...READ, 'patch'], CORE, 'persistentvolumes'),
  // Also those that are plugged in later, which no pod names.
  rule(['get'], CORE, 'persistentvolumeclaims'),
  rule(['patch'], CORE, 'persistentvolumeclaims/status'),
  volumeSnapshots([...READ, 'patch'], 'volumesnapshotcontents'),
  volumeSnapshots(['patch'], 'volumesnapshotcontents/status'),
];
