/** Finds the claims and volumes that are created from a VolumeSnapshot, for which its deletion has to wait. */
import { VOLUME_COPY_FINALIZER } from '#api/names.ts';
import type { Reader } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { objectKey } from '#client/object-key.ts';
import { localVolumeName } from '#controllers/shared/local-storage/local-volume.ts';
import {
  CLAIMS_BY_SOURCE,
  isAwaited,
  volumeSnapshotKeysOf,
  sourceSnapshotKeys,
} from '#controllers/shared/local-storage/snapshot-source.ts';
import { handleOf } from '#controllers/volume-snapshot/volume-snapshot-world.ts';
import { PERSISTENT_VOLUMES, type PersistentVolume, type PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { VolumeSnapshot, VolumeSnapshotContent } from '#kube/volume-snapshot-kinds.ts';
import { LiveUse } from '#runtime/live-use.ts';

/** Index of volumes that are not filled yet by the handle of their snapshot. */
const FILLED_FROM = 'filled-from';
/** Index of contents by their handle. */
const BY_HANDLE = 'snapshot-handle';

export class SnapshotUse {
  readonly #claims: Informer<PersistentVolumeClaim>;
  readonly #volumes: Informer<PersistentVolume>;
  readonly #contents: Informer<VolumeSnapshotContent>;
  readonly #filled: LiveUse<PersistentVolume>;

  constructor(
    claims: Informer<PersistentVolumeClaim>,
    volumes: Informer<PersistentVolume>,
    contents: Informer<VolumeSnapshotContent>,
    reader: Pick<Reader, 'list'>,
  ) {
    this.#claims = claims;
    this.#volumes = volumes;
    this.#contents = contents;
    this.#filled = new LiveUse(reader, PERSISTENT_VOLUMES, handlesToFillFrom);
    claims.addIndex(CLAIMS_BY_SOURCE, sourceSnapshotKeys);
    volumes.addIndex(FILLED_FROM, handlesToFillFrom);
    contents.addIndex(BY_HANDLE, (content) => {
      const handle = handleOf(content);
      return handle === undefined ? [] : [handle];
    });
  }

  /** Reports whether a claim without a volume has the snapshot as its source. */
  isClaimed(snapshotKey: string): boolean {
    return isAwaited(this.#claims, snapshotKey);
  }

  /**
   * Reports whether a volume is being filled from the snapshot. Reads live before the data of a deleted snapshot is
   * removed.
   */
  async isCopied(
    snapshot: Stored<VolumeSnapshot>,
    content: VolumeSnapshotContent | undefined,
    options: { signal: AbortSignal },
  ): Promise<boolean> {
    const handle = content === undefined ? undefined : handleOf(content);
    if (handle !== undefined && this.#volumes.byIndex(FILLED_FROM, handle).length > 0) return true;
    if (this.#hasUnseenVolume(objectKey(snapshot))) return true;
    const { deletionTimestamp, resourceVersion } = snapshot.metadata;
    if (handle === undefined || deletionTimestamp === undefined) return false;
    return await this.#filled.isUsed(handle, { resourceVersion }, options);
  }

  #hasUnseenVolume(snapshotKey: string): boolean {
    // The cache of volumes may be behind that of claims: a volume that it does not have may be new.
    return this.#claims.byIndex(CLAIMS_BY_SOURCE, snapshotKey).some((claim) => {
      const volumeName = localVolumeName(claim);
      const isMissing = claim.spec.volumeName === volumeName && this.#volumes.get(volumeName) === undefined;
      return isMissing && claim.status?.phase !== 'Lost';
    });
  }

  /** Returns the keys of the VolumeSnapshots from which the volume is filled. */
  sourcesOf(volume: PersistentVolume): string[] {
    return handles(volume).flatMap((handle) => this.#contents.byIndex(BY_HANDLE, handle).flatMap(volumeSnapshotKeysOf));
  }
}

function handlesToFillFrom(volume: PersistentVolume): string[] {
  return volume.metadata.finalizers?.includes(VOLUME_COPY_FINALIZER) === true ? handles(volume) : [];
}

function handles({ spec }: PersistentVolume): string[] {
  const handle = spec.csi?.volumeAttributes?.['snapshot'];
  return handle === undefined ? [] : [handle];
}
