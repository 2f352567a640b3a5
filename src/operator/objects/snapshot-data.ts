/**
 * Policies on VolumeSnapshotContents of our driver, which have no namespace: the data of a snapshot is removed with its
 * VolumeSnapshot, which other policies keep while a restore needs it, and only our components say where the data is. A
 * content with the deletion policy Retain can be deleted, because its data stays.
 */
import { LOCAL_DRIVER } from '#api/names.ts';
import { accountOf } from '#api/own-accounts.ts';
import { NODES_GROUP } from '#kube/node-user.ts';
import { VOLUME_SNAPSHOT_CONTENTS, VOLUME_SNAPSHOT_GROUP } from '#kube/volume-snapshot-kinds.ts';
import type { DesiredObject } from '#operator/desired.ts';
import { celText, keepsKeys, sameStatus, user } from '#operator/objects/cel.ts';
import { buildPolicy, matchDeletes, matchUpdates } from '#operator/objects/policy.ts';

const { plural } = VOLUME_SNAPSHOT_CONTENTS;

/** CEL: the data was made by our driver, not by a user who has described existing data. */
const isOwnData = {
  name: 'is-own-data',
  expression: `oldObject.spec.driver == ${celText(LOCAL_DRIVER)} && has(oldObject.spec.source.volumeHandle)`,
};
const isController = `${user} == ${celText(accountOf('volume-snapshot-controller'))}`;

export const snapshotDataPolicies: readonly DesiredObject[] = [
  ...buildPolicy('selfsame-snapshot-data-deletes', {
    resourceRules: [{ ...matchDeletes(VOLUME_SNAPSHOT_GROUP, plural), apiVersions: ['*'] }],
    matchConditions: [isOwnData],
    validations: [
      {
        expression: `${isController} || oldObject.spec.deletionPolicy == 'Retain'`,
        messageExpression: `'VolumeSnapshotContent "' + string(oldObject.metadata.name) + '" cannot be deleted: it has the data of VolumeSnapshot ' + string(oldObject.spec.volumeSnapshotRef.namespace) + '/' + string(oldObject.spec.volumeSnapshotRef.name) + '; delete that one'`,
        reason: 'Forbidden',
      },
    ],
  }),
  ...buildPolicy('selfsame-snapshot-data-places', {
    resourceRules: [{ ...matchUpdates(VOLUME_SNAPSHOT_GROUP, plural, `${plural}/status`), apiVersions: ['*'] }],
    matchConditions: [
      isOwnData,
      { name: 'is-not-exempt', expression: `!(${isController} || ${celText(NODES_GROUP)} in request.userInfo.groups)` },
    ],
    validations: [
      {
        expression: `${keepsKeys('annotations', "k.startsWith('selfsame.io/')")} && ${sameStatus('snapshotHandle')} && ${sameStatus('readyToUse')}`,
        message: 'annotations selfsame.io/* and the status of a VolumeSnapshotContent are written by Selfsame only',
        reason: 'Forbidden',
      },
    ],
  }),
];
