/** Builders of policy rules for the API groups of our roles. */
import { IDENTITY_GROUP, KUBEVIRT_GROUP, SNAPSHOT_GROUP } from '#api/names.ts';
import { VOLUME_SNAPSHOT_GROUP } from '#kube/volume-snapshot-kinds.ts';
import type { PolicyRule } from '#operator/kinds.ts';

export const READ = ['get', 'list', 'watch'] as const;
export const CORE = '';
export const STORAGE = 'storage.k8s.io';

export function rule(verbs: readonly string[], apiGroup: string, ...resources: readonly string[]): PolicyRule {
  return { apiGroups: [apiGroup], resources: [...resources], verbs: [...verbs] };
}

export const vms = (verbs: readonly string[], ...resources: readonly string[]) =>
  rule(verbs, KUBEVIRT_GROUP, ...resources);
export const identities = (verbs: readonly string[], ...resources: readonly string[]) =>
  rule(verbs, IDENTITY_GROUP, ...resources);
/** Returns a rule for snapshots of VMs. */
export const vmSnapshots = (verbs: readonly string[], ...resources: readonly string[]) =>
  rule(verbs, SNAPSHOT_GROUP, ...resources);
/** Returns a rule for snapshots of volumes. */
export const volumeSnapshots = (verbs: readonly string[], ...resources: readonly string[]) =>
  rule(verbs, VOLUME_SNAPSHOT_GROUP, ...resources);

export const RECORD_EVENTS: PolicyRule = {
  apiGroups: ['', 'events.k8s.io'],
  resources: ['events'],
  verbs: ['create', 'patch', 'update'],
};
export const READ_SETTINGS = vms(READ, 'kubevirts');
