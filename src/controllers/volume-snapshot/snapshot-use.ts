/** Finds the claims and volumes that are created from a VolumeSnapshot, for which its deletion has to wait. */
import { VOLUME_COPY_FINALIZER } from '#api/names.ts';
import type { Informer } from '#client/informer.ts';
import { localVolumeName } from '#controllers/shared/local-storage/local-volume.ts';
import {
  CLAIMS_BY_SOURCE,
  volumeSnapshotKeysOf,
  sourceSnapshotKeys,
} from '#controllers/shared/local-storage/snapshot-source.ts';
import { handleOf } from '#controllers/volume-snapshot/volume-snapshot-world.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { VolumeSnapshotContent } from '#kube/volume-snapshot-kinds.ts';

/** Index of volumes that are not filled yet by the handle of their snapshot. */
const FILLED_FROM = 'filled-from';
/** Index of contents by their handle. */
const BY_HANDLE = 'snapshot-handle';

export class SnapshotUse {
  readonly #claims: Informer<PersistentVolumeClaim>;
  readonly #volumes: Informer<PersistentVolume>;
  readonly #contents: Informer<VolumeSnapshotContent>;

  constructor(
    claims: Informer<PersistentVolumeClaim>,
    volumes: Informer<PersistentVolume>,
    contents: Informer<VolumeSnapshotContent>,
  ) {
    this.#claims = claims;
    this.#volumes = volumes;
    this.#contents = contents;
    claims.addIndex(CLAIMS_BY_SOURCE, sourceSnapshotKeys);
    volumes.addIndex(FILLED_FROM, (volume) => (isFilling(volume) ? handles(volume) : []));
    contents.addIndex(BY_HANDLE, (content) => {
      const handle = handleOf(content);
      return handle === undefined ? [] : [handle];
    });
  }

  /** Reports whether a claim without a volume has the snapshot as its source. */
  isClaimed(snapshotKey: string): boolean {
    return this.#claims
      .byIndex(CLAIMS_BY_SOURCE, snapshotKey)
      .some(({ metadata, spec }) => !spec.volumeName && metadata.deletionTimestamp === undefined);
  }

  /** Reports whether a volume is being filled from the snapshot. */
  isCopied(snapshotKey: string, content: VolumeSnapshotContent | undefined): boolean {
    const handle = content === undefined ? undefined : handleOf(content);
    if (handle !== undefined && this.#volumes.byIndex(FILLED_FROM, handle).length > 0) return true;
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

function isFilling({ metadata }: PersistentVolume): boolean {
  return metadata.finalizers?.includes(VOLUME_COPY_FINALIZER) === true;
}

function handles({ spec }: PersistentVolume): string[] {
  const handle = spec.csi?.volumeAttributes?.['snapshot'];
  return handle === undefined ? [] : [handle];
}
