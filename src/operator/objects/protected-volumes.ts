/**
 * Policies on volumes that hold disks of protected VMs. Volumes have no namespace, but administrators of storage may write
 * them without any right on VMs. Our controllers and nodes decide by annotations of volumes where the data is and which
 * copies can be removed, so on these volumes only they write the annotations.
 */
import { RECLAIM_POLICY_ANNOTATION, VOLUME_COPY_FINALIZER } from '#api/names.ts';
import { VOLUME_KEEPERS } from '#api/own-accounts.ts';
import { RELATIONS, UNPROTECT_FIRST } from '#api/protection/protected-deletes.ts';
import { NODES_GROUP } from '#kube/node-user.ts';
import { PROVISIONED_BY } from '#kube/volume-keys.ts';
import type { DesiredObject } from '#operator/desired.ts';
import { annotationOf, celList, celText, finalizersOf, keepsKeys, markOf, user } from '#operator/objects/cel.ts';
import { buildPolicy, matchUpdates } from '#operator/objects/policy.ts';

/** The beginning of all our annotations on volumes. */
const OWN_PREFIX = 'selfsame.io/';

const resourceRules = [matchUpdates('', 'persistentvolumes', 'persistentvolumes/status')];
const isMarked = { name: 'is-marked', expression: `${markOf('oldObject')} != ''` };

const phaseOf = (object: string) =>
  `(has(${object}.status) && has(${object}.status.phase) ? ${object}.status.phase : '')`;
const reclaimPolicyOf = (object: string) =>
  `(has(${object}.spec.persistentVolumeReclaimPolicy) ? ${object}.spec.persistentVolumeReclaimPolicy : '')`;

/** CEL: the message that refuses a change of a marked volume. */
const refusal = (what: string) =>
  [
    `'PersistentVolume "' + oldObject.metadata.name + '" cannot be ${what}: ${RELATIONS.PersistentVolume} the protected VirtualMachine '`,
    markOf('oldObject'),
    `'; ${UNPROTECT_FIRST}'`,
  ].join(' + ');

/**
 * A marked volume must not be bound to another claim, which would take the data, and must not become Released, because
 * provisioners then delete the data before they delete the volume. If its claim is really gone, the mark is removed
 * first and the binder retries.
 */
const binding = buildPolicy('selfsame-protected-volumes', {
  resourceRules,
  matchConditions: [isMarked],
  validations: [
    {
      expression:
        '!has(oldObject.spec.claimRef) || (has(object.spec.claimRef) && object.spec.claimRef == oldObject.spec.claimRef)',
      messageExpression: refusal('bound to another claim'),
      reason: 'Forbidden',
    },
    {
      expression: `${phaseOf('oldObject')} != 'Bound' || ${phaseOf('object')} == 'Bound'`,
      messageExpression: refusal('released'),
      reason: 'Forbidden',
    },
  ],
});

/** The location of the data (spec.csi) cannot be changed on any volume. */
const data = buildPolicy('selfsame-protected-volume-data', {
  resourceRules,
  matchConditions: [
    isMarked,
    {
      name: 'is-not-exempt',
      expression: `!(${user} in ${celList(VOLUME_KEEPERS)} || ${celText(NODES_GROUP)} in request.userInfo.groups)`,
    },
  ],
  validations: [
    {
      expression: keepsKeys('annotations', `k.startsWith(${celText(OWN_PREFIX)}) || k == ${celText(PROVISIONED_BY)}`),
      messageExpression: refusal(`changed in its annotations ${OWN_PREFIX}* and ${PROVISIONED_BY}`),
      reason: 'Forbidden',
    },
    {
      // The policy of a volume that is retained because its claim is already being deleted.
      expression: `${annotationOf('oldObject', RECLAIM_POLICY_ANNOTATION)} == '' || ${reclaimPolicyOf('object')} == ${reclaimPolicyOf('oldObject')}`,
      messageExpression: refusal('given another reclaim policy'),
      reason: 'Forbidden',
    },
    {
      // Without the finalizer, a volume that is not filled yet would count as complete.
      expression: `has(oldObject.metadata.deletionTimestamp) || !(${celText(VOLUME_COPY_FINALIZER)} in ${finalizersOf('oldObject')}) || ${celText(VOLUME_COPY_FINALIZER)} in ${finalizersOf('object')}`,
      messageExpression: refusal(`changed in its finalizer ${VOLUME_COPY_FINALIZER}`),
      reason: 'Forbidden',
    },
  ],
});

export const protectedVolumePolicies: readonly DesiredObject[] = [...binding, ...data];
