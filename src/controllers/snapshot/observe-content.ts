/** Observes one VirtualMachineSnapshotContent. Objects that a cache does not have are read live. */
import { VIRTUAL_MACHINE_SNAPSHOTS, type VirtualMachineSnapshot } from '#api/virtual-machine-snapshot/kind.ts';
import {
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  type VirtualMachineSnapshotContent,
} from '#api/virtual-machine-snapshot-content/kind.ts';
import { VIRTUAL_MACHINE_RESTORES } from '#api/virtual-machine-restore/kind.ts';
import { keyOf } from '#client/object-key.ts';
import type { ContentWorld, VolumeCopyView } from '#controllers/snapshot/content-world.ts';
import type { ObserverParts } from '#controllers/snapshot/observe-snapshot.ts';
import { createRestoreCheck } from '#controllers/snapshot/restore-check.ts';
import { contentNameOf } from '#controllers/snapshot/snapshot-world.ts';
import { snapshotClassFor } from '#controllers/snapshot/source-volumes.ts';
import { PERSISTENT_VOLUMES } from '#kube/core-kinds.ts';
import { controllerUid, type Stored } from '#kube/meta.ts';
import { VOLUME_SNAPSHOT_CLASSES, VOLUME_SNAPSHOTS, type VolumeSnapshot } from '#kube/volume-snapshot-kinds.ts';
import type { ControllerDefinition } from '#runtime/controller.ts';
import { createLiveReader } from '#runtime/live-reader.ts';

type Content = Stored<VirtualMachineSnapshotContent>;
interface Options {
  readonly signal: AbortSignal;
}

export function createContentObserver({
  client,
  informer,
  clock,
}: ObserverParts): ControllerDefinition<ContentWorld>['observe'] {
  const contents = informer(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS);
  const snapshots = informer(VIRTUAL_MACHINE_SNAPSHOTS);
  const restores = informer(VIRTUAL_MACHINE_RESTORES);
  const volumeSnapshots = informer(VOLUME_SNAPSHOTS);
  const persistentVolumes = informer(PERSISTENT_VOLUMES);
  const classes = informer(VOLUME_SNAPSHOT_CLASSES);
  const readLive = createLiveReader(client);
  const hasRestore = createRestoreCheck(restores, client);

  async function findSnapshot(
    { metadata, spec }: Content,
    options: Options,
  ): Promise<Stored<VirtualMachineSnapshot> | undefined> {
    if (!spec.virtualMachineSnapshotName) return undefined;
    const name = { namespace: metadata.namespace, name: spec.virtualMachineSnapshotName };
    const isOfContent = (snapshot: Stored<VirtualMachineSnapshot> | undefined) =>
      snapshot !== undefined && contentNameOf(snapshot) === metadata.name;
    const cached = snapshots.get(keyOf(name));
    const found = isOfContent(cached) ? cached : await readLive(VIRTUAL_MACHINE_SNAPSHOTS, name, options);
    return isOfContent(found) ? found : undefined;
  }

  /**
   * Reads a VolumeSnapshot that existed before live, because a stale cache must not make it look lost. One with another
   * owner, or of another claim, is not the copy: a user may have created it first.
   */
  async function findVolumeSnapshot(
    { metadata, status }: Content,
    { volumeSnapshotName, persistentVolumeClaim }: VolumeCopyView['backup'],
    options: Options,
  ): Promise<Stored<VolumeSnapshot> | undefined> {
    const name = { namespace: metadata.namespace, name: volumeSnapshotName };
    const existed = status?.volumeSnapshotStatus?.some((known) => known.volumeSnapshotName === volumeSnapshotName);
    const found =
      volumeSnapshots.get(keyOf(name)) ?? (existed ? await readLive(VOLUME_SNAPSHOTS, name, options) : undefined);
    const { name: claim } = persistentVolumeClaim.metadata;
    const { persistentVolumeClaimName: source = claim } = found?.spec.source ?? {};
    const owner = found === undefined ? undefined : controllerUid(found);
    return source === claim && (owner === undefined || owner === metadata.uid) ? found : undefined;
  }

  async function observeCopies(content: Content, options: Options): Promise<VolumeCopyView[]> {
    const known = classes.list();
    const copies = (content.spec.volumeBackups ?? []).map(async (backup): Promise<VolumeCopyView[]> => {
      const { volumeSnapshotName, persistentVolumeClaim } = backup;
      if (!volumeSnapshotName) return [];
      const volumeSnapshot = await findVolumeSnapshot(content, { ...backup, volumeSnapshotName }, options);
      const snapshotClass = snapshotClassFor(persistentVolumes.get(persistentVolumeClaim.spec.volumeName ?? ''), known);
      return [{ backup: { ...backup, volumeSnapshotName }, volumeSnapshot, snapshotClass }];
    });
    return (await Promise.all(copies)).flat();
  }

  return async (key, options) => {
    const content = contents.get(key);
    if (content === undefined) return undefined;
    const { namespace } = content.metadata;
    const { virtualMachineSnapshotName: name = '' } = content.spec;
    return {
      content,
      snapshot: await findSnapshot(content, options),
      copies: await observeCopies(content, options),
      hasRestore: await hasRestore(keyOf({ namespace, name }), content, options),
      now: clock.now(),
    };
  };
}
