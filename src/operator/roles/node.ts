/**
 * Permissions of our nodes in addition to those of every node. All nodes share one role; the policies selfsame-node-…
 * (objects/node-policies.ts) restrict each node to its own instances, volumes and snapshots.
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
  // The addresses of other node agents, for migrations.
  rule(['get'], CORE, 'nodes'),
  // The certificate that identifies the node to our components.
  rule(['create'], SUBRESOURCES_GROUP, AGENT_CERTIFICATES),
  // Renewal of the certificate that identifies the node to the API server; the cluster approves it automatically.
  rule(['create', 'get'], 'certificates.k8s.io', 'certificatesigningrequests'),
  rule(['create'], 'certificates.k8s.io', 'certificatesigningrequests/selfnodeclient'),
  // Removes the finalizers of deleted data.
  rule([...READ, 'patch'], CORE, 'persistentvolumes'),
  // Includes hotplugged claims, which no pod uses.
  rule(['get'], CORE, 'persistentvolumeclaims'),
  rule(['patch'], CORE, 'persistentvolumeclaims/status'),
  volumeSnapshots([...READ, 'patch'], 'volumesnapshotcontents'),
  volumeSnapshots(['patch'], 'volumesnapshotcontents/status'),
];
