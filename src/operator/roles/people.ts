/** What people may do with VMs who may do the like with the rest of a namespace: added to admin, edit and view. */
import { STATE_VERBS } from '#api/can.ts';
import { UPLOAD_VERB } from '#api/disk-stream.ts';
import { SUBRESOURCES_GROUP } from '#api/names.ts';
import type { PolicyRule } from '#operator/kinds.ts';
import { identities, READ, rule, vms, vmSnapshots, volumeSnapshots } from '#operator/roles/rules.ts';

const ALL = [...READ, 'create', 'update', 'patch', 'delete', 'deletecollection'] as const;
const KINDS = ['virtualmachines', 'virtualmachineinstances', 'virtualmachineinstancemigrations'] as const;
const SNAPSHOTS = ['virtualmachinesnapshots', 'virtualmachinesnapshotcontents', 'virtualmachinerestores'] as const;

const subresources = (verbs: readonly string[], kind: string, ...names: readonly string[]) =>
  rule(verbs, SUBRESOURCES_GROUP, ...names.map((name) => `${kind}/${name}`));

const LOOK: readonly PolicyRule[] = [
  subresources(['get'], 'virtualmachines', 'expand-spec', 'objectgraph'),
  rule(['update'], SUBRESOURCES_GROUP, 'expand-vm-spec'),
  subresources(['get'], 'virtualmachineinstances', 'guestosinfo', 'filesystemlist', 'userlist', 'objectgraph'),
];

const OPERATE: readonly PolicyRule[] = [
  subresources(
    ['update'],
    'virtualmachines',
    ...['start', 'stop', 'restart', 'migrate', 'addvolume', 'removevolume', 'memorydump', 'removememorydump'],
    ...STATE_VERBS,
  ),
  subresources(['get'], 'virtualmachines', 'portforward', 'exportdisk', 'importdisk'),
  // A WebSocket, and therefore a GET, but what comes in is written.
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
  vmSnapshots(verbs, ...SNAPSHOTS),
  volumeSnapshots(verbs, 'volumesnapshots'),
];

const view = [vms(READ, ...KINDS), identities(READ, 'virtualmachineidentities'), ...snapshots(READ), ...LOOK];
const edit = [vms(ALL, ...KINDS), identities(READ, 'virtualmachineidentities'), ...snapshots(ALL), ...LOOK, ...OPERATE];

/** Rules by the role of Kubernetes that they are added to. */
export const peopleRules: Readonly<Record<string, readonly PolicyRule[]>> = { admin: edit, edit, view };

/** Everybody who is somebody may ask for the version, as virtctl does before anything else. */
export const everybodyRules: readonly PolicyRule[] = [rule(['get', 'list'], SUBRESOURCES_GROUP, 'version', 'healthz')];
