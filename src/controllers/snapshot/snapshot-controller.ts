/**
 * VirtualMachineSnapshots and their contents. A snapshot waits until controllers/vm holds its VM, writes down the VM as
 * it is (VirtualMachineSnapshotContent) and asks for a copy of each disk (VolumeSnapshot). Copying is left to the
 * VolumeSnapshots' own controller and the node agents, collecting copies of contents that are gone to the garbage
 * collector.
 */
import { VIRTUAL_MACHINE_SNAPSHOTS } from '#api/virtual-machine-snapshot/kind.ts';
import { VIRTUAL_MACHINE_SNAPSHOT_CONTENTS } from '#api/virtual-machine-snapshot-content/kind.ts';
import { VIRTUAL_MACHINE_RESTORES } from '#api/virtual-machine-restore/kind.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { objectKey } from '#client/object-key.ts';
import { claimKeysOfVolume } from '#controllers/claim-keys.ts';
import type { PlaneController } from '#controllers/plane-controller.ts';
import type { ContentWorld } from '#controllers/snapshot/content-world.ts';
import { decideContent } from '#controllers/snapshot/decide-content.ts';
import { decideSnapshot } from '#controllers/snapshot/decide-snapshot.ts';
import { contentObserver } from '#controllers/snapshot/observe-content.ts';
import { snapshotObserver } from '#controllers/snapshot/observe-snapshot.ts';
import { isBeingTaken, type SnapshotWorld } from '#controllers/snapshot/snapshot-world.ts';
import {
  BEING_TAKEN,
  claimSource,
  CONTENT_BY_SNAPSHOT,
  HELD_BY_CLAIM,
  HELD_BY_STATE,
  heldClaimKeysOf,
  heldStateKeysOf,
  restoredSnapshotKeysOf,
  snapshotKeysOf,
  UNFINISHED_BY_SNAPSHOT,
  UNREADY,
  UNREADY_BY_VOLUME,
  unreadyVolumesOf,
  recordSource,
  vmiSource,
  vmSource,
} from '#controllers/snapshot/sources.ts';
import { stateIndexKeysOf } from '#controllers/persistent-state/claims-by-state.ts';
import { UNFINISHED_BY_VM, unfinishedSnapshotOf } from '#controllers/vm/lock.ts';
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
  start: (parts) => [
    startController(snapshotDefinition(parts), parts),
    startController(contentDefinition(parts), parts),
  ],
};

function snapshotDefinition(parts: ControllerParts): ControllerDefinition<SnapshotWorld> {
  const { informer } = parts;
  const snapshots = informer(VIRTUAL_MACHINE_SNAPSHOTS);
  const contents = informer(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS);
  const restores = informer(VIRTUAL_MACHINE_RESTORES);
  const vms = informer(VIRTUAL_MACHINES);
  const vmis = informer(VIRTUAL_MACHINE_INSTANCES);
  const claims = informer(PERSISTENT_VOLUME_CLAIMS);
  const persistentVolumes = informer(PERSISTENT_VOLUMES);
  const classes = informer(VOLUME_SNAPSHOT_CLASSES);
  snapshots.addIndex(UNFINISHED_BY_VM, unfinishedSnapshotOf);
  snapshots.addIndex(BEING_TAKEN, (snapshot) => (isBeingTaken(snapshot) ? [BEING_TAKEN] : []));
  restores.addIndex(UNFINISHED_BY_SNAPSHOT, restoredSnapshotKeysOf);
  vms.addIndex(HELD_BY_CLAIM, heldClaimKeysOf);
  vms.addIndex(HELD_BY_STATE, heldStateKeysOf);

  return defineController<SnapshotWorld>({
    name: 'vm-snapshots',
    type: VIRTUAL_MACHINE_SNAPSHOTS,
    concurrency: CONCURRENCY,
    sources: [
      source(snapshots),
      source(contents, snapshotKeysOf),
      source(restores, restoredSnapshotKeysOf),
      vmSource(vms, snapshots),
      vmiSource(vmis, snapshots),
      recordSource(informer(VIRTUAL_MACHINE_IDENTITIES), snapshots),
      claimSource(claims, vms, (claim) => [objectKey(claim)]),
      claimSource(claims, vms, stateIndexKeysOf, HELD_BY_STATE),
      claimSource(persistentVolumes, vms, claimKeysOfVolume),
      source(classes, () => snapshots.byIndex(BEING_TAKEN, BEING_TAKEN).map(objectKey)),
    ],
    observe: snapshotObserver(parts),
    decide: decideSnapshot,
    subject: ({ snapshot }) => snapshot,
  });
}

function contentDefinition(parts: ControllerParts): ControllerDefinition<ContentWorld> {
  const { informer } = parts;
  const contents = informer(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS);
  const snapshots = informer(VIRTUAL_MACHINE_SNAPSHOTS);
  const restores = informer(VIRTUAL_MACHINE_RESTORES);
  const volumeSnapshots = informer(VOLUME_SNAPSHOTS);
  contents.addIndex(CONTENT_BY_SNAPSHOT, snapshotKeysOf);
  contents.addIndex(UNREADY_BY_VOLUME, unreadyVolumesOf);
  contents.addIndex(UNREADY, (content) => (content.status?.readyToUse === true ? [] : [UNREADY]));
  restores.addIndex(UNFINISHED_BY_SNAPSHOT, restoredSnapshotKeysOf);
  const contentsOf = (snapshotKey: string) => contents.byIndex(CONTENT_BY_SNAPSHOT, snapshotKey).map(objectKey);

  return defineController<ContentWorld>({
    name: 'vm-snapshot-contents',
    type: VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
    concurrency: CONCURRENCY,
    sources: [
      source(contents),
      source(snapshots, (snapshot) => contentsOf(objectKey(snapshot))),
      source(restores, (restore) => restoredSnapshotKeysOf(restore).flatMap(contentsOf)),
      source(volumeSnapshots, controllerKeys(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS)),
      source(informer(PERSISTENT_VOLUMES), ({ metadata }) =>
        contents.byIndex(UNREADY_BY_VOLUME, metadata.name).map(objectKey),
      ),
      source(informer(VOLUME_SNAPSHOT_CLASSES), () => contents.byIndex(UNREADY, UNREADY).map(objectKey)),
    ],
    observe: contentObserver(parts),
    decide: decideContent,
    subject: ({ content }) => content,
  });
}
