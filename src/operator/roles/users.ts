/** Permissions of users, which are aggregated to Kubernetes' roles admin, edit and view. */
import { UPLOAD_VERB } from '#api/storage/disk-stream.ts';
import { SUBRESOURCES_GROUP } from '#api/names.ts';
import type { PolicyRule } from '#kube/cluster-kinds.ts';
import {
  identityRule,
  networkDefinitionRule,
  READ_NETWORK_RULE,
  READ_VERBS,
  policyRule,
  vmRule,
  vmSnapshotRule,
  volumeSnapshotRule,
} from '#operator/roles/rules.ts';
import { RELEASE_DISK_VERB, STATE_VERBS } from '#api/verbs/verb.ts';

const ALL = [...READ_VERBS, 'create', 'update', 'patch', 'delete', 'deletecollection'] as const;
const KINDS = ['virtualmachines', 'virtualmachineinstances', 'virtualmachineinstancemigrations'] as const;
const SNAPSHOTS = ['virtualmachinesnapshots', 'virtualmachinesnapshotcontents', 'virtualmachinerestores'] as const;

const subresources = (verbs: readonly string[], kind: string, ...names: readonly string[]) =>
  policyRule(verbs, SUBRESOURCES_GROUP, ...names.map((name) => `${kind}/${name}`));

const VIEW_SUBRESOURCES: readonly PolicyRule[] = [
  subresources(['get'], 'virtualmachines', 'expand-spec', 'objectgraph'),
  policyRule(['update'], SUBRESOURCES_GROUP, 'expand-vm-spec'),
  subresources(['get'], 'virtualmachineinstances', 'guestosinfo', 'filesystemlist', 'userlist', 'objectgraph'),
];

const EDIT_SUBRESOURCES: readonly PolicyRule[] = [
  subresources(
    ['update'],
    'virtualmachines',
    ...['start', 'stop', 'restart', 'migrate', 'addvolume', 'removevolume', 'memorydump', 'removememorydump'],
    ...STATE_VERBS,
    RELEASE_DISK_VERB,
  ),
  subresources(['get'], 'virtualmachines', 'portforward', 'exportdisk', 'importdisk'),
  // A GET because it is a WebSocket, although it writes.
  subresources(['get'], 'persistentvolumeclaims', UPLOAD_VERB),
  subresources(
    ['update'],
    'virtualmachineinstances',
    ...['pause', 'unpause', 'freeze', 'unfreeze', 'softreboot', 'reset', 'addvolume', 'removevolume'],
  ),
  subresources(
    ['get'],
    'virtualmachineinstances',
    ...['console', 'vnc', 'vnc/screenshot', 'portforward', 'usbredir', 'vsock'],
  ),
];

const snapshots = (verbs: readonly string[]) => [
  vmSnapshotRule(verbs, ...SNAPSHOTS),
  volumeSnapshotRule(verbs, 'volumesnapshots'),
];

const view = [
  vmRule(READ_VERBS, ...KINDS),
  identityRule(READ_VERBS, 'virtualmachineidentities'),
  READ_NETWORK_RULE,
  networkDefinitionRule(READ_VERBS),
  ...snapshots(READ_VERBS),
  ...VIEW_SUBRESOURCES,
];
const edit = [
  vmRule(ALL, ...KINDS),
  identityRule(READ_VERBS, 'virtualmachineidentities'),
  READ_NETWORK_RULE,
  networkDefinitionRule(READ_VERBS),
  ...snapshots(ALL),
  ...VIEW_SUBRESOURCES,
  ...EDIT_SUBRESOURCES,
];

/** Rules by the role of Kubernetes to which they are added. */
export const userRules: Readonly<Record<string, readonly PolicyRule[]>> = { admin: edit, edit, view };

/** Rules for all authenticated users: virtctl reads the version first. */
export const authenticatedRules: readonly PolicyRule[] = [
  policyRule(['get', 'list'], SUBRESOURCES_GROUP, 'version', 'healthz'),
];
