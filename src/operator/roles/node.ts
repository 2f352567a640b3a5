/**
 * Permissions of our nodes in addition to those of every node. All nodes share one role; the policies selfsame-node-…
 * (objects/node-policies.ts) restrict each node to its own instances, volumes and snapshots.
 */
import { AGENT_CERTIFICATES } from '#api/agent-certificate.ts';
import { SUBRESOURCES_GROUP } from '#api/names.ts';
import type { PolicyRule } from '#kube/cluster-kinds.ts';
import {
  CORE,
  identityRule,
  networkDefinitionRule,
  networkRule,
  READ_VERBS,
  RECORD_EVENTS_RULE,
  policyRule,
  vmRule,
  volumeSnapshotRule,
} from '#operator/roles/rules.ts';

export const nodeRules: readonly PolicyRule[] = [
  RECORD_EVENTS_RULE,
  vmRule(READ_VERBS, 'virtualmachineinstances'),
  vmRule(['patch', 'update'], 'virtualmachineinstances/status'),
  identityRule(['get'], 'virtualmachineidentities'),
  // The subnets and the MTU of the default network.
  networkRule(READ_VERBS, 'guestnetworks'),
  // The secondary networks of guests that start here.
  networkDefinitionRule(['get']),
  // The addresses of other node agents, for migrations and for the tunnel between hosts.
  policyRule(READ_VERBS, CORE, 'nodes'),
  // The certificate that identifies the node to our components.
  policyRule(['create'], SUBRESOURCES_GROUP, AGENT_CERTIFICATES),
  // Renewal of the certificate that identifies the node to the API server; the cluster approves it automatically.
  policyRule(['create', 'get'], 'certificates.k8s.io', 'certificatesigningrequests'),
  policyRule(['create'], 'certificates.k8s.io', 'certificatesigningrequests/selfnodeclient'),
  // Removes the finalizers of deleted data.
  policyRule([...READ_VERBS, 'patch'], CORE, 'persistentvolumes'),
  // Includes hotplugged claims, which no pod uses.
  policyRule(['get'], CORE, 'persistentvolumeclaims'),
  policyRule(['patch'], CORE, 'persistentvolumeclaims/status'),
  volumeSnapshotRule([...READ_VERBS, 'patch'], 'volumesnapshotcontents'),
  volumeSnapshotRule(['patch'], 'volumesnapshotcontents/status'),
];
