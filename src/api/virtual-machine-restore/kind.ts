/**
 * The wish that a VM is what a snapshot holds, and how it went.
 *
 *   (new) ─► Progressing ─► complete
 *                 └───────► Failure
 */
import { condition } from '#api/condition.ts';
import type { CustomKind } from '#api/custom-kind.ts';
import { SNAPSHOT_GROUP } from '#api/names.ts';
import { vmReference } from '#api/virtual-machine-snapshot/kind.ts';
import { isTrue } from '#kube/conditions.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import { bool, list, map, obj, oneOf, str, time, type Infer } from '#kube/schema-dsl.ts';

export const READINESS_POLICIES = ['StopTarget', 'WaitGracePeriod', 'FailImmediate', 'WaitEventually'] as const;

export const restoreSpec = obj(
  {
    target: vmReference,
    virtualMachineSnapshotName: str(),
    targetReadinessPolicy: oneOf(READINESS_POLICIES, {
      description: 'What is done about a target that runs: it is stopped, or waited for (five minutes by default).',
    }),
    volumeRestorePolicy: oneOf(['RandomizeNames', 'InPlace', 'PrefixTargetName'], {
      description:
        'The names of the claims: new ones (the default), those of the snapshot, or the target and the volume.',
    }),
    volumeOwnershipPolicy: oneOf(['Vm', 'None'], {
      description: 'Whether the claims go with the VM (Vm, the default).',
    }),
    volumeRestoreOverrides: list(
      obj(
        { volumeName: str(), restoreName: str(), labels: map(str()), annotations: map(str()) },
        { required: ['volumeName'] },
      ),
    ),
    patches: list(str(), { description: 'JSON patch operations, one each, for a target that is made.' }),
  },
  { required: ['target', 'virtualMachineSnapshotName'] },
);

/** Written by controllers/restore. */
export const restoreStatus = obj({
  restores: list(
    obj(
      { volumeName: str(), persistentVolumeClaim: str(), volumeSnapshotName: str() },
      { required: ['volumeName', 'persistentVolumeClaim', 'volumeSnapshotName'] },
    ),
  ),
  restoreTime: time(),
  complete: bool(),
  conditions: list(condition),
  targetUID: str({ description: 'Of the VM that is restored, as soon as there is one.' }),
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
  description: 'Makes a VM what a snapshot holds.',
  spec: restoreSpec,
  status: restoreStatus,
  columns: [
    { name: 'TargetKind', type: 'string', jsonPath: '.spec.target.kind' },
    { name: 'TargetName', type: 'string', jsonPath: '.spec.target.name' },
    { name: 'Complete', type: 'boolean', jsonPath: '.status.complete' },
    { name: 'RestoreTime', type: 'date', jsonPath: '.status.restoreTime' },
  ],
};

/** It has found its snapshot whole: what it needs next is the target, be that there or to be made. */
export function hasRestoreBegun({ status }: Pick<VirtualMachineRestore, 'status'>): boolean {
  return status?.targetUID !== undefined || status?.restores !== undefined;
}

/** Nothing is done for it any more, and the VM is free again. */
export function isRestoreFinished({ status }: Pick<VirtualMachineRestore, 'status'>): boolean {
  return status?.complete === true || isTrue(status?.conditions, 'Failure');
}
