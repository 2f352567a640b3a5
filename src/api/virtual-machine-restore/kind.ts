/**
 * A restore of a VM from a snapshot.
 *
 *   (new) ─► Progressing ─► complete
 *                 └───────► Failure
 */
import { conditionSchema } from '#api/custom-kinds/condition.ts';
import type { CustomKind } from '#api/custom-kinds/custom-kind.ts';
import { SNAPSHOT_GROUP } from '#api/names.ts';
import { vmReference } from '#api/virtual-machine-snapshot/kind.ts';
import { isTrue } from '#kube/conditions.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import { bool, list, map, obj, oneOf, str, time, type Infer } from '#kube/schema-dsl.ts';

const READINESS_POLICIES = ['StopTarget', 'WaitGracePeriod', 'FailImmediate', 'WaitEventually'] as const;

export const restoreSpec = obj(
  {
    target: vmReference,
    virtualMachineSnapshotName: str(),
    targetReadinessPolicy: oneOf(READINESS_POLICIES, {
      description:
        'How a running target is handled: stop it, fail, or wait until it is stopped (by default for five minutes).',
    }),
    volumeRestorePolicy: oneOf(['RandomizeNames', 'InPlace', 'PrefixTargetName'], {
      description:
        'The names of the restored claims: new random names (the default), the names in the snapshot, or names made of the target and the volume.',
    }),
    volumeOwnershipPolicy: oneOf(['Vm', 'None'], {
      description: 'Vm (the default): the claims are deleted with the VM. None: they are kept.',
    }),
    persistentStatePolicy: oneOf(['Restore', 'Omit'], {
      description:
        'TPM and EFI variables. Restore (the default): as in the snapshot. Omit: a new target starts with empty state, and an existing one keeps its own.',
    }),
    volumeRestoreOverrides: list(
      obj(
        { volumeName: str(), restoreName: str(), labels: map(str()), annotations: map(str()) },
        { required: ['volumeName'] },
      ),
    ),
    patches: list(str(), {
      description: 'JSON patch operations, one per item, for a target that the restore creates.',
    }),
  },
  { required: ['target', 'virtualMachineSnapshotName'] },
);

/** Written by controllers/restore. */
const restoreStatus = obj({
  replacingClaims: bool({
    description:
      'True once the restore replaces claims of the target (InPlace). From then on it does not fail, but waits.',
  }),
  marksClaims: bool({
    description:
      'True if the restore recognizes its claims by an annotation that no user can write. Absent in restores that an earlier version has begun.',
  }),
  restores: list(
    obj(
      { volumeName: str(), persistentVolumeClaim: str(), volumeSnapshotName: str() },
      { required: ['volumeName', 'persistentVolumeClaim', 'volumeSnapshotName'] },
    ),
  ),
  restoreTime: time(),
  complete: bool(),
  conditions: list(conditionSchema),
  targetUID: str({ description: 'The uid of the restored VM, once it exists.' }),
});

export type RestoreSpec = Infer<typeof restoreSpec>;
export type RestoreStatus = Infer<typeof restoreStatus>;

export interface VirtualMachineRestore extends KubeObject {
  spec: RestoreSpec;
  status?: RestoreStatus;
}

export const VIRTUAL_MACHINE_RESTORES: ResourceType<VirtualMachineRestore> = {
  group: SNAPSHOT_GROUP,
  version: 'v1beta1',
  kind: 'VirtualMachineRestore',
  plural: 'virtualmachinerestores',
  namespaced: true,
};

export const virtualMachineRestore: CustomKind<VirtualMachineRestore> = {
  type: VIRTUAL_MACHINE_RESTORES,
  singular: 'virtualmachinerestore',
  shortNames: ['vmrestore', 'vmrestores'],
  categories: ['all'],
  description: 'Restores a VM from a snapshot.',
  spec: restoreSpec,
  status: restoreStatus,
  columns: [
    { name: 'TargetKind', type: 'string', jsonPath: '.spec.target.kind' },
    { name: 'TargetName', type: 'string', jsonPath: '.spec.target.name' },
    { name: 'Complete', type: 'boolean', jsonPath: '.status.complete' },
    { name: 'RestoreTime', type: 'date', jsonPath: '.status.restoreTime' },
  ],
};

/** Reports whether the restore has begun: its snapshot is complete, and it works on an existing or a new target. */
export function hasRestoreBegun({ status }: Pick<VirtualMachineRestore, 'status'>): boolean {
  return status?.targetUID !== undefined || status?.restores !== undefined;
}

/** Reports whether the restore has ended and no longer holds the VM. */
export function isRestoreFinished({ status }: Pick<VirtualMachineRestore, 'status'>): boolean {
  return status?.complete === true || isTrue(status?.conditions, 'Failure');
}
