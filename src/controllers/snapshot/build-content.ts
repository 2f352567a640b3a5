/**
 * Builds the VirtualMachineSnapshotContent: the VM, its identity record, and the volumes to copy. All later steps read
 * it, so that a controller that restarts continues the same snapshot. Pure.
 */
import { needsState, STATE_VOLUME } from '#api/storage/persistent-state.ts';
import { LAST_RESTORE_ANNOTATION, SNAPSHOT_INSTANCE_ANNOTATION, VM_SNAPSHOT_CONTENT_FINALIZER } from '#api/names.ts';
import { INDICATIONS, type VirtualMachineSnapshot } from '#api/virtual-machine-snapshot/kind.ts';
import {
  type SnapshotIdentity,
  type SnapshotVm,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  type VirtualMachineSnapshotContent,
  type VolumeBackup,
} from '#api/virtual-machine-snapshot-content/kind.ts';
import { isBeingRemoved } from '#api/virtual-machine-identity/record-state.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { type VirtualMachineInstance, isFinal } from '#api/virtual-machine-instance/kind.ts';
import { indicationsOfInstance, type Indication } from '#controllers/snapshot/indications.ts';
import { contentNameOf, type HeldVm } from '#controllers/snapshot/snapshot-world.ts';
import { includedVolumes, leavesOutData } from '#controllers/snapshot/source-volumes.ts';
import { apiVersionOf, controllerUid, type ObjectMeta, type Stored } from '#kube/meta.ts';

/** Annotation of contents: the indications, separated by commas. */
export const INDICATIONS_ANNOTATION = 'selfsame.io/snapshot-indications';
/**
 * Annotation of contents: the volumes that the running guest does not use, because they are new, separated by commas.
 */
const IDLE_VOLUMES_ANNOTATION = 'selfsame.io/snapshot-idle-volumes';

export function buildVmSnapshotContent(
  snapshot: Stored<VirtualMachineSnapshot>,
  heldVm: HeldVm,
): VirtualMachineSnapshotContent {
  const { name, namespace, uid } = snapshot.metadata;
  const volumeBackups = includedVolumes(heldVm).map(({ name: volumeName, claim }): VolumeBackup => {
    const persistentVolumeClaim = { metadata: snapshotMetadataOf(claim.metadata), spec: claim.spec };
    return { volumeName, persistentVolumeClaim, volumeSnapshotName: `vmsnapshot-${uid}-volume-${volumeName}` };
  });
  const virtualMachineIdentity = snapshotIdentityOf(heldVm);
  return {
    apiVersion: apiVersionOf(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS),
    kind: VIRTUAL_MACHINE_SNAPSHOT_CONTENTS.kind,
    metadata: {
      name: contentNameOf(snapshot),
      namespace,
      finalizers: [VM_SNAPSHOT_CONTENT_FINALIZER],
      annotations: buildAnnotations(heldVm),
    },
    spec: {
      virtualMachineSnapshotName: name,
      source: {
        virtualMachine: snapshotVmOf(heldVm.vm),
        ...(virtualMachineIdentity === undefined ? {} : { virtualMachineIdentity }),
      },
      volumeBackups,
    },
  };
}

function buildAnnotations(held: HeldVm): Record<string, string> {
  const vmi = held.vmi === undefined || isFinal(held.vmi) ? undefined : held.vmi;
  const indications: Indication[] = vmi === undefined ? [] : indicationsOfInstance(vmi);
  if (leavesOutData(held)) indications.push('PartialSnapshot');
  const idle = vmi === undefined ? [] : idleVolumes(held, vmi);
  return {
    ...(vmi === undefined ? {} : { [SNAPSHOT_INSTANCE_ANNOTATION]: vmi.metadata.uid }),
    ...(indications.length === 0 ? {} : { [INDICATIONS_ANNOTATION]: indications.join(',') }),
    ...(idle.length === 0 ? {} : { [IDLE_VOLUMES_ANNOTATION]: idle.join(',') }),
  };
}

function idleVolumes(held: HeldVm, { spec, status }: VirtualMachineInstance): string[] {
  const state = status?.volumeStatus?.find(({ name }) => name === STATE_VOLUME)?.persistentVolumeClaimInfo?.claimName;
  const claims = new Set(spec.volumes?.map(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName));
  if (needsState(spec)) claims.add(state);
  return includedVolumes(held).flatMap(({ name, claim }) => (claims.has(claim.metadata.name) ? [] : [name]));
}

function snapshotVmOf({ metadata, spec, status }: Stored<VirtualMachine>): SnapshotVm {
  const snapshotMetadata = snapshotMetadataOf(metadata);
  const { [LAST_RESTORE_ANNOTATION]: _, ...annotations } = snapshotMetadata.annotations ?? {};
  // The VM is held only while the snapshot is taken.
  const { snapshotInProgress: __, ...lastingStatus } = status ?? {};
  return {
    metadata: snapshotMetadata.annotations === undefined ? snapshotMetadata : { ...snapshotMetadata, annotations },
    spec,
    ...(status === undefined ? {} : { status: lastingStatus }),
  };
}

/** Returns the record if it belongs to this VM and is not being removed. */
function snapshotIdentityOf({ vm, identity }: HeldVm): SnapshotIdentity | undefined {
  if (identity === undefined || isBeingRemoved(identity)) return undefined;
  const owner = controllerUid(identity);
  if (owner !== undefined && owner !== vm.metadata.uid) return undefined;
  const { spec, status } = identity;
  return { spec, ...(status === undefined ? {} : { status }) };
}

function snapshotMetadataOf({ name, namespace, uid, labels, annotations }: ObjectMeta): ObjectMeta {
  return {
    name,
    namespace,
    uid,
    ...(labels === undefined ? {} : { labels }),
    ...(annotations === undefined ? {} : { annotations }),
  };
}

/** Returns the uid of the instance that ran when the content was created. */
export function instanceUidOf({ metadata }: VirtualMachineSnapshotContent): string | undefined {
  return metadata.annotations?.[SNAPSHOT_INSTANCE_ANNOTATION];
}

export function indicationsOfContent(content: VirtualMachineSnapshotContent): Indication[] {
  const listed = parseList(content, INDICATIONS_ANNOTATION);
  return INDICATIONS.filter((indication) => listed.includes(indication));
}

export function idleVolumesOfContent(content: VirtualMachineSnapshotContent): readonly string[] {
  return parseList(content, IDLE_VOLUMES_ANNOTATION);
}

function parseList({ metadata }: VirtualMachineSnapshotContent, annotation: string): string[] {
  return (metadata.annotations?.[annotation] ?? '').split(',').filter((word) => word !== '');
}
