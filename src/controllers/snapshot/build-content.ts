/**
 * The VirtualMachineSnapshotContent: the VM as it is, who it is, and which of its volumes are copied. All that is done
 * later is read from it, so that it stays the same snapshot whoever goes on with it. Pure.
 */
import { isFinal } from '#api/can.ts';
import { needsState, STATE_VOLUME } from '#api/persistent-state.ts';
import { LAST_RESTORE_ANNOTATION, SNAPSHOT_INSTANCE_ANNOTATION, VM_SNAPSHOT_CONTENT_FINALIZER } from '#api/names.ts';
import { INDICATIONS, type VirtualMachineSnapshot } from '#api/virtual-machine-snapshot/kind.ts';
import {
  type SnapshotIdentity,
  type SnapshotVm,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  type VirtualMachineSnapshotContent,
  type VolumeBackup,
} from '#api/virtual-machine-snapshot-content/kind.ts';
import { isVanishing } from '#api/virtual-machine-identity/record-state.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { indicationsOf, type Indication } from '#controllers/snapshot/indications.ts';
import { contentNameOf, type HeldVm } from '#controllers/snapshot/snapshot-world.ts';
import { includedVolumes, leavesData } from '#controllers/snapshot/source-volumes.ts';
import { apiVersionOf, controllerUid, type ObjectMeta, type Stored } from '#kube/meta.ts';

/** On contents: the indications, with commas. */
export const INDICATIONS_ANNOTATION = 'selfsame.io/snapshot-indications';
/** On contents: with commas, the volumes that the guest does not have open, because they came to the template later. */
export const IDLE_VOLUMES_ANNOTATION = 'selfsame.io/snapshot-idle-volumes';

export function buildContent(snapshot: Stored<VirtualMachineSnapshot>, held: HeldVm): VirtualMachineSnapshotContent {
  const { name, namespace, uid } = snapshot.metadata;
  const volumeBackups = includedVolumes(held).map(({ name: volumeName, claim }): VolumeBackup => {
    const persistentVolumeClaim = { metadata: lasting(claim.metadata), spec: claim.spec };
    return { volumeName, persistentVolumeClaim, volumeSnapshotName: `vmsnapshot-${uid}-volume-${volumeName}` };
  });
  const virtualMachineIdentity = identityIn(held);
  return {
    apiVersion: apiVersionOf(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS),
    kind: VIRTUAL_MACHINE_SNAPSHOT_CONTENTS.kind,
    metadata: {
      name: contentNameOf(snapshot),
      namespace,
      finalizers: [VM_SNAPSHOT_CONTENT_FINALIZER],
      annotations: circumstances(held),
    },
    spec: {
      virtualMachineSnapshotName: name,
      source: {
        virtualMachine: vmIn(held.vm),
        ...(virtualMachineIdentity === undefined ? {} : { virtualMachineIdentity }),
      },
      volumeBackups,
    },
  };
}

function circumstances(held: HeldVm): Record<string, string> {
  const vmi = held.vmi === undefined || isFinal(held.vmi) ? undefined : held.vmi;
  const indications: Indication[] = vmi === undefined ? [] : indicationsOf(vmi);
  if (leavesData(held)) indications.push('PartialSnapshot');
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

function vmIn({ metadata, spec, status }: Stored<VirtualMachine>): SnapshotVm {
  const kept = lasting(metadata);
  const { [LAST_RESTORE_ANNOTATION]: _, ...annotations } = kept.annotations ?? {};
  // That it is held right now belongs to the moment, not to the VM.
  const { snapshotInProgress: __, ...lastingStatus } = status ?? {};
  return {
    metadata: kept.annotations === undefined ? kept : { ...kept, annotations },
    spec,
    ...(status === undefined ? {} : { status: lastingStatus }),
  };
}

/** Returns the record of this very VM; none that another VM has left behind or that is on its way out. */
function identityIn({ vm, identity }: HeldVm): SnapshotIdentity | undefined {
  if (identity === undefined || isVanishing(identity)) return undefined;
  const owner = controllerUid(identity);
  if (owner !== undefined && owner !== vm.metadata.uid) return undefined;
  const { spec, status } = identity;
  return { spec, ...(status === undefined ? {} : { status }) };
}

function lasting({ name, namespace, uid, labels, annotations }: ObjectMeta): ObjectMeta {
  return {
    name,
    namespace,
    uid,
    ...(labels === undefined ? {} : { labels }),
    ...(annotations === undefined ? {} : { annotations }),
  };
}

/** The uid of the instance that ran when it was made. */
export function instanceOf({ metadata }: VirtualMachineSnapshotContent): string | undefined {
  return metadata.annotations?.[SNAPSHOT_INSTANCE_ANNOTATION];
}

export function indicationsIn(content: VirtualMachineSnapshotContent): Indication[] {
  const said = listIn(content, INDICATIONS_ANNOTATION);
  return INDICATIONS.filter((indication) => said.includes(indication));
}

export function idleVolumesIn(content: VirtualMachineSnapshotContent): readonly string[] {
  return listIn(content, IDLE_VOLUMES_ANNOTATION);
}

function listIn({ metadata }: VirtualMachineSnapshotContent, annotation: string): string[] {
  return (metadata.annotations?.[annotation] ?? '').split(',').filter((word) => word !== '');
}
