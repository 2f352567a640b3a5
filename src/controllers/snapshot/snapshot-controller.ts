/**
 * The controllers of VirtualMachineSnapshots and their contents. A snapshot waits until controllers/vm holds its VM,
 * records the VM (VirtualMachineSnapshotContent) and requests a copy of each disk (VolumeSnapshot). The controller of
 * VolumeSnapshots and the node agents make the copies; the garbage collector deletes those of deleted contents.
 */
import { VIRTUAL_MACHINE_SNAPSHOTS } from '#api/virtual-machine-snapshot/kind.ts';
import { VIRTUAL_MACHINE_SNAPSHOT_CONTENTS } from '#api/virtual-machine-snapshot-content/kind.ts';
import { VIRTUAL_MACHINE_RESTORES } from '#api/virtual-machine-restore/kind.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { objectKey } from '#client/object-key.ts';
import { claimKeysOfVolume } from '#controllers/shared/indexes/claim-keys.ts';
import type { PlaneController } from '#controllers/shared/plane-controller.ts';
import type { ContentWorld } from '#controllers/snapshot/content-world.ts';
import { decideContent } from '#controllers/snapshot/decide-content.ts';
import { decideSnapshot } from '#controllers/snapshot/decide-snapshot.ts';
import { createContentObserver } from '#controllers/snapshot/observe-content.ts';
import { createSnapshotObserver } from '#controllers/snapshot/observe-snapshot.ts';
import { isSnapshotInProgress, type SnapshotWorld } from '#controllers/snapshot/snapshot-world.ts';
import {
  IN_PROGRESS,
  claimSource,
  CONTENT_BY_COPY,
  CONTENT_BY_SNAPSHOT,
  copyKeysOfContent,
  HELD_BY_CLAIM,
  HELD_BY_STATE,
  heldClaimKeysOf,
  heldStateKeysOf,
  snapshotKeysOfRestore,
  snapshotKeysOfContent,
  UNFINISHED_BY_SNAPSHOT,
  UNREADY,
  UNREADY_BY_VOLUME,
  unreadyVolumesOf,
  recordChangeSource,
  vmiChangeSource,
  vmChangeSource,
} from '#controllers/snapshot/sources.ts';
import { stateIndexKeysOf } from '#controllers/shared/persistent-state/claims-by-state.ts';
import { UNFINISHED_BY_VM, vmKeysOfUnfinishedSnapshot } from '#controllers/shared/indexes/unfinished-by-vm.ts';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from '#kube/core-kinds.ts';
import { VOLUME_SNAPSHOT_CLASSES, VOLUME_SNAPSHOTS } from '#kube/volume-snapshot-kinds.ts';
import {
  controllerKeys,
  defineController,
  source,
  startController,
  type ControllerDefinition,
} from '#runtime/controller.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';

const CONCURRENCY = 10;

export const snapshotController: PlaneController = {
  account: 'snapshot-controller',
  eventSource: 'snapshot-controller',
  start: (parts) => [startController(defineSnapshots(parts), parts), startController(defineContents(parts), parts)],
};

function defineSnapshots(parts: ControllerParts): ControllerDefinition<SnapshotWorld> {
  const { informer } = parts;
  const snapshots = informer(VIRTUAL_MACHINE_SNAPSHOTS);
  const contents = informer(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS);
  const restores = informer(VIRTUAL_MACHINE_RESTORES);
  const vms = informer(VIRTUAL_MACHINES);
  const vmis = informer(VIRTUAL_MACHINE_INSTANCES);
  const claims = informer(PERSISTENT_VOLUME_CLAIMS);
  const persistentVolumes = informer(PERSISTENT_VOLUMES);
  const classes = informer(VOLUME_SNAPSHOT_CLASSES);
  snapshots.addIndex(UNFINISHED_BY_VM, vmKeysOfUnfinishedSnapshot);
  snapshots.addIndex(IN_PROGRESS, (snapshot) => (isSnapshotInProgress(snapshot) ? [IN_PROGRESS] : []));
  restores.addIndex(UNFINISHED_BY_SNAPSHOT, snapshotKeysOfRestore);
  vms.addIndex(HELD_BY_CLAIM, heldClaimKeysOf);
  vms.addIndex(HELD_BY_STATE, heldStateKeysOf);

  return defineController<SnapshotWorld>({
    name: 'vm-snapshots',
    type: VIRTUAL_MACHINE_SNAPSHOTS,
    concurrency: CONCURRENCY,
    sources: [
      source(snapshots),
      source(contents, snapshotKeysOfContent),
      source(restores, snapshotKeysOfRestore),
      vmChangeSource(vms, snapshots),
      vmiChangeSource(vmis, snapshots),
      recordChangeSource(informer(VIRTUAL_MACHINE_IDENTITIES), snapshots),
      claimSource(claims, vms, (claim) => [objectKey(claim)]),
      claimSource(claims, vms, stateIndexKeysOf, HELD_BY_STATE),
      claimSource(persistentVolumes, vms, claimKeysOfVolume),
      source(classes, () => snapshots.byIndex(IN_PROGRESS, IN_PROGRESS).map(objectKey)),
    ],
    observe: createSnapshotObserver(parts),
    decide: decideSnapshot,
    subject: ({ snapshot }) => snapshot,
  });
}

function defineContents(parts: ControllerParts): ControllerDefinition<ContentWorld> {
  const { informer } = parts;
  const contents = informer(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS);
  const snapshots = informer(VIRTUAL_MACHINE_SNAPSHOTS);
  const restores = informer(VIRTUAL_MACHINE_RESTORES);
  const volumeSnapshots = informer(VOLUME_SNAPSHOTS);
  contents.addIndex(CONTENT_BY_SNAPSHOT, snapshotKeysOfContent);
  contents.addIndex(CONTENT_BY_COPY, copyKeysOfContent);
  contents.addIndex(UNREADY_BY_VOLUME, unreadyVolumesOf);
  contents.addIndex(UNREADY, (content) => (content.status?.readyToUse === true ? [] : [UNREADY]));
  restores.addIndex(UNFINISHED_BY_SNAPSHOT, snapshotKeysOfRestore);
  const contentKeysOf = (snapshotKey: string) => contents.byIndex(CONTENT_BY_SNAPSHOT, snapshotKey).map(objectKey);

  return defineController<ContentWorld>({
    name: 'vm-snapshot-contents',
    type: VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
    concurrency: CONCURRENCY,
    sources: [
      source(contents),
      source(snapshots, (snapshot) => contentKeysOf(objectKey(snapshot))),
      source(restores, (restore) => snapshotKeysOfRestore(restore).flatMap(contentKeysOf)),
      // By name, too: a user may remove the owner of a copy, or create another one with its name.
      source(volumeSnapshots, (copy) => [
        ...controllerKeys(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS)(copy),
        ...contents.byIndex(CONTENT_BY_COPY, objectKey(copy)).map(objectKey),
      ]),
      source(informer(PERSISTENT_VOLUMES), ({ metadata }) =>
        contents.byIndex(UNREADY_BY_VOLUME, metadata.name).map(objectKey),
      ),
      source(informer(VOLUME_SNAPSHOT_CLASSES), () => contents.byIndex(UNREADY, UNREADY).map(objectKey)),
    ],
    observe: createContentObserver(parts),
    decide: decideContent,
    subject: ({ content }) => content,
  });
}
