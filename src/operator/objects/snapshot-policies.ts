/**
 * Policies on snapshots of VMs. A restore writes the spec of the VM and its identity record from the content of a
 * snapshot, so only the controller that has read them from the VM writes the spec of a content. Patches of a restore
 * change the VM as the user wants, so they require the right to update it. A VolumeSnapshot that a restore needs is not
 * deleted: a restore in place has deleted the old disk before the new one is filled. A restore decides by its status and
 * that of its snapshot, so only our controllers write them, and a restore that replaces disks is not removed.
 */
import { KUBEVIRT_GROUP, SNAPSHOT_GROUP, VM_RESTORE_FINALIZER } from '#api/names.ts';
import { accountOf, NAMESPACE_DELETERS } from '#api/own-accounts.ts';
import { NEEDED_BY_RESTORE_PREFIX, ONLY_COPY_ANNOTATION } from '#api/virtual-machine-restore/needed-snapshots.ts';
import { VOLUME_SNAPSHOT_GROUP } from '#kube/volume-snapshot-kinds.ts';
import type { DesiredObject } from '#operator/desired.ts';
import { annotationOf, celList, celText, finalizersOf, keepsKeys, metadataMapOf, user } from '#operator/objects/cel.ts';
import { buildPolicy, matchDeletes, matchUpdates, matchWrites } from '#operator/objects/policy.ts';

const writesOf = (resource: string) => ({ ...matchWrites(SNAPSHOT_GROUP, resource), apiVersions: ['*'] });
const writesSpec = {
  name: 'writes-the-spec',
  expression: "request.operation == 'CREATE' || object.spec != oldObject.spec",
};

const VOLUME_SNAPSHOTS = ['volumesnapshots', 'volumesnapshots/status'] as const;
/** CEL: the key `k` is the mark of a restore. */
const isNeed = `k.startsWith(${celText(NEEDED_BY_RESTORE_PREFIX)})`;
/** CEL: the annotation with the key `k` holds the snapshot. */
const isHold = `${isNeed} || k == ${celText(ONLY_COPY_ANNOTATION)}`;
const annotations = metadataMapOf('oldObject', 'annotations');

const RESTORE_KIND = 'VirtualMachineRestore';
const STATUSES = ['virtualmachinesnapshots', 'virtualmachinesnapshotcontents', 'virtualmachinerestores'].map(
  (resource) => `${resource}/status`,
);
const RESTORER = accountOf('restore-controller');
const SNAPSHOTTER = accountOf('snapshot-controller');

/** CEL: a field of the stored status is true. */
const isSet = (field: string) => `has(oldObject.status) && has(oldObject.status.${field}) && oldObject.status.${field}`;
const hasFailed =
  "has(oldObject.status) && has(oldObject.status.conditions) && oldObject.status.conditions.exists(c, c.type == 'Failure' && c.status == 'True')";

export const snapshotPolicies: readonly DesiredObject[] = [
  ...buildPolicy('selfsame-snapshot-contents', {
    resourceRules: [writesOf('virtualmachinesnapshotcontents')],
    matchConditions: [writesSpec],
    validations: [
      {
        expression: `${user} == ${celText(SNAPSHOTTER)}`,
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
      { name: 'is-needed', expression: `${annotations}.exists(k, ${isHold})` },
      { name: 'is-not-with-its-namespace', expression: `!(${user} in ${celList(NAMESPACE_DELETERS)})` },
    ],
    variables: [
      {
        name: 'restores',
        expression: `${annotations}.filter(k, ${isNeed}).map(k, string(oldObject.metadata.annotations[k])).join(', ')`,
      },
      { name: 'copied', expression: annotationOf('oldObject', ONLY_COPY_ANNOTATION) },
    ],
    validations: [
      {
        expression: "variables.restores == '' && variables.copied == ''",
        messageExpression: [
          `'VolumeSnapshot "' + string(oldObject.metadata.name) + '" cannot be deleted: '`,
          "(variables.restores == '' ? 'it has the only copy of PersistentVolumeClaim ' + variables.copied + ' of a protected VirtualMachine; restore the VM from its snapshot, or unprotect it' : 'VirtualMachineRestore ' + variables.restores + ' needs it; wait until the restored disks have their data')",
        ].join(' + '),
        reason: 'Forbidden',
      },
    ],
  }),
  ...buildPolicy('selfsame-needed-snapshot-marks', {
    resourceRules: [{ ...matchWrites(VOLUME_SNAPSHOT_GROUP, ...VOLUME_SNAPSHOTS), apiVersions: ['*'] }],
    matchConditions: [{ name: 'is-not-the-restore', expression: `${user} != ${celText(RESTORER)}` }],
    validations: [
      {
        expression: keepsKeys('annotations', isHold),
        message: `${NEEDED_BY_RESTORE_PREFIX}* and ${ONLY_COPY_ANNOTATION} are written by Selfsame only`,
        reason: 'Forbidden',
      },
    ],
  }),
  ...buildPolicy('selfsame-snapshot-statuses', {
    resourceRules: [{ ...matchUpdates(SNAPSHOT_GROUP, ...STATUSES), apiVersions: ['*'] }],
    validations: [
      {
        expression: `${user} == (request.kind.kind == ${celText(RESTORE_KIND)} ? ${celText(RESTORER)} : ${celText(SNAPSHOTTER)})`,
        messageExpression: "'the status of a ' + request.kind.kind + ' is written by Selfsame only'",
        reason: 'Forbidden',
      },
    ],
  }),
  ...buildPolicy('selfsame-restore-finalizers', {
    resourceRules: [{ ...matchUpdates(SNAPSHOT_GROUP, 'virtualmachinerestores'), apiVersions: ['*'] }],
    matchConditions: [
      { name: 'replaces-claims', expression: isSet('replacingClaims') },
      { name: 'is-not-finished', expression: `!(${isSet('complete')}) && !(${hasFailed})` },
      { name: 'is-not-exempt', expression: `!(${user} in ${celList([RESTORER, ...NAMESPACE_DELETERS])})` },
    ],
    validations: [
      {
        expression: `!(${celText(VM_RESTORE_FINALIZER)} in ${finalizersOf('oldObject')}) || ${celText(VM_RESTORE_FINALIZER)} in ${finalizersOf('object')}`,
        messageExpression: `'the finalizer ${VM_RESTORE_FINALIZER} of VirtualMachineRestore "' + string(oldObject.metadata.name) + '" is removed by Selfsame only, because it replaces disks: wait until it is complete'`,
        reason: 'Forbidden',
      },
    ],
  }),
];
