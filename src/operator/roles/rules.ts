/** Builders of policy rules for the API groups of our roles. */
import { IDENTITY_GROUP, KUBEVIRT_GROUP, NETWORK_GROUP, SNAPSHOT_GROUP } from '#api/names.ts';
import { NETWORK_ATTACHMENT_DEFINITIONS } from '#api/network/network-attachment-definition.ts';
import { VOLUME_SNAPSHOT_GROUP } from '#kube/volume-snapshot-kinds.ts';
import type { PolicyRule } from '#kube/cluster-kinds.ts';

export const READ_VERBS = ['get', 'list', 'watch'] as const;
export const CORE = '';
export const STORAGE = 'storage.k8s.io';

export function policyRule(verbs: readonly string[], apiGroup: string, ...resources: readonly string[]): PolicyRule {
  return { apiGroups: [apiGroup], resources: [...resources], verbs: [...verbs] };
}

export const vmRule = (verbs: readonly string[], ...resources: readonly string[]) =>
  policyRule(verbs, KUBEVIRT_GROUP, ...resources);
export const identityRule = (verbs: readonly string[], ...resources: readonly string[]) =>
  policyRule(verbs, IDENTITY_GROUP, ...resources);
export const networkRule = (verbs: readonly string[], ...resources: readonly string[]) =>
  policyRule(verbs, NETWORK_GROUP, ...resources);
/** Returns a rule for NetworkAttachmentDefinitions. Only cluster administrators write them: they name devices of the nodes. */
export const networkDefinitionRule = (verbs: readonly string[]) =>
  policyRule(verbs, NETWORK_ATTACHMENT_DEFINITIONS.group, NETWORK_ATTACHMENT_DEFINITIONS.plural);
/** Returns a rule for snapshots of VMs. */
export const vmSnapshotRule = (verbs: readonly string[], ...resources: readonly string[]) =>
  policyRule(verbs, SNAPSHOT_GROUP, ...resources);
/** Returns a rule for snapshots of volumes. */
export const volumeSnapshotRule = (verbs: readonly string[], ...resources: readonly string[]) =>
  policyRule(verbs, VOLUME_SNAPSHOT_GROUP, ...resources);

export const RECORD_EVENTS_RULE: PolicyRule = {
  apiGroups: ['', 'events.k8s.io'],
  resources: ['events'],
  verbs: ['create', 'patch', 'update'],
};
/** Reads the guest network and the addresses of all guests. */
export const READ_NETWORK_RULE = networkRule(READ_VERBS, 'guestnetworks', 'networkaddresses');
export const READ_SETTINGS_RULE = vmRule(READ_VERBS, 'kubevirts');
