/**
 * Policies on snapshots of VMs. A restore writes the spec of the VM and its identity record from the content of a
 * snapshot, so only the controller that has read them from the VM writes the spec of a content. Patches of a restore
 * change the VM as the user wants, so they require the right to update it. A VolumeSnapshot that a restore needs is not
 * deleted: a restore in place has deleted the old disk before the new one is filled.
 */
import { KUBEVIRT_GROUP, SNAPSHOT_GROUP } from '#api/names.ts';
import { accountOf, NAMESPACE_DELETERS } from '#api/own-accounts.ts';
import { NEEDED_BY_RESTORE_PREFIX } from '#api/virtual-machine-restore/needed-snapshots.ts';
import { VOLUME_SNAPSHOT_GROUP } from '#kube/volume-snapshot-kinds.ts';
import type { DesiredObject } from '#operator/desired.ts';
import { celList, celText, user } from '#operator/objects/cel.ts';
import { buildPolicy, matchDeletes, matchWrites } from '#operator/objects/policy.ts';

const writesOf = (resource: string) => ({ ...matchWrites(SNAPSHOT_GROUP, resource), apiVersions: ['*'] });
const writesSpec = {
  name: 'writes-the-spec',
  expression: "request.operation == 'CREATE' || object.spec != oldObject.spec",
};

const VOLUME_SNAPSHOTS = ['volumesnapshots', 'volumesnapshots/status'] as const;
/** CEL: the annotations of the object, or an empty map. */
const annotationsOf = (object: string) => `(has(${object}.metadata.annotations) ? ${object}.metadata.annotations : {})`;
const isNeed = `k.startsWith(${celText(NEEDED_BY_RESTORE_PREFIX)})`;
/** CEL: the second map has all marks of restores of the first one. */
const keepsNeeds = (from: string, to: string) =>
  `${from}.all(k, !(${isNeed}) || (k in ${to} && ${to}[k] == ${from}[k]))`;
const oldAnnotations = `(request.operation == 'CREATE' ? {} : ${annotationsOf('oldObject')})`;

export const snapshotPolicies: readonly DesiredObject[] = [
  ...buildPolicy('selfsame-snapshot-contents', {
    resourceRules: [writesOf('virtualmachinesnapshotcontents')],
    matchConditions: [writesSpec],
    validations: [
      {
        expression: `${user} == ${celText(accountOf('snapshot-controller'))}`,
        message:
          'the spec of a VirtualMachineSnapshotContent is written by Selfsame only; take a VirtualMachineSnapshot',
        reason: 'Forbidden',
      },
    ],
  }),
  ...buildPolicy('selfsame-restore-patches', {
    resourceRules: [writesOf('virtualmachinerestores')],
    matchConditions: [
      writesSpec,
      { name: 'has-patches', expression: 'has(object.spec.patches) && size(object.spec.patches) > 0' },
    ],
    validations: [
      {
        expression: `authorizer.group('${KUBEVIRT_GROUP}').resource('virtualmachines').namespace(request.namespace).name(object.spec.target.name).check('update').allowed()`,
        messageExpression:
          "'patches require the right to update VirtualMachine \"' + object.spec.target.name + '\": ask for it, or restore without patches'",
        reason: 'Forbidden',
      },
    ],
  }),
  ...buildPolicy('selfsame-needed-snapshots', {
    resourceRules: [{ ...matchDeletes(VOLUME_SNAPSHOT_GROUP, 'volumesnapshots'), apiVersions: ['*'] }],
    matchConditions: [
      { name: 'is-needed', expression: `${annotationsOf('oldObject')}.exists(k, ${isNeed})` },
      { name: 'is-not-with-its-namespace', expression: `!(${user} in ${celList(NAMESPACE_DELETERS)})` },
    ],
    variables: [
      {
        name: 'restores',
        expression: `${annotationsOf('oldObject')}.filter(k, ${isNeed}).map(k, string(oldObject.metadata.annotations[k])).join(', ')`,
      },
    ],
    validations: [
      {
        expression: "variables.restores == ''",
        messageExpression: `'VolumeSnapshot "' + string(oldObject.metadata.name) + '" cannot be deleted: VirtualMachineRestore ' + variables.restores + ' needs it; wait until the restored disks have their data'`,
        reason: 'Forbidden',
      },
    ],
  }),
  ...buildPolicy('selfsame-needed-snapshot-marks', {
    resourceRules: [{ ...matchWrites(VOLUME_SNAPSHOT_GROUP, ...VOLUME_SNAPSHOTS), apiVersions: ['*'] }],
    matchConditions: [
      { name: 'is-not-the-restore', expression: `${user} != ${celText(accountOf('restore-controller'))}` },
    ],
    validations: [
      {
        expression: `${keepsNeeds(annotationsOf('object'), oldAnnotations)} && ${keepsNeeds(oldAnnotations, annotationsOf('object'))}`,
        message: `${NEEDED_BY_RESTORE_PREFIX}* is written by Selfsame only`,
        reason: 'Forbidden',
      },
    ],
  }),
];
