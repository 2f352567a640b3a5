/** Whether volumes are being made from a VolumeSnapshot: what its deletion has to wait for. */
import { VOLUME_COPY_FINALIZER } from '#api/names.ts';
import type { Informer } from '#client/informer.ts';
import { volumeNameFor } from '#controllers/storage/local-volume.ts';
import { CLAIMS_BY_SOURCE, snapshotKeysOf, sourceSnapshotKeys } from '#controllers/storage/snapshot-source.ts';
import { handleOf } from '#controllers/volume-snapshot/snapshot-world.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { VolumeSnapshotContent } from '#kube/volume-snapshot-kinds.ts';

/** Volumes that are still being filled, by the handle of the snapshot. */
const FILLED_FROM = 'filled-from';
/** Contents by their handle. */
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

  /** A claim that has no volume yet is to be made from it. */
  isClaimed(snapshotKey: string): boolean {
    return this.#claims
      .byIndex(CLAIMS_BY_SOURCE, snapshotKey)
      .some(({ metadata, spec }) => !spec.volumeName && metadata.deletionTimestamp === undefined);
  }

  isCopied(snapshotKey: string, content: VolumeSnapshotContent | undefined): boolean {
    const handle = content === undefined ? undefined : handleOf(content);
    if (handle !== undefined && this.#volumes.byIndex(FILLED_FROM, handle).length > 0) return true;
    // The cache of volumes may be behind that of claims: one that it does not show may have just been made.
    return this.#claims.byIndex(CLAIMS_BY_SOURCE, snapshotKey).some((claim) => {
      const made = volumeNameFor(claim);
      const unseen = claim.spec.volumeName === made && this.#volumes.get(made) === undefined;
      return unseen && claim.status?.phase !== 'Lost';
    });
  }

  /** Keys of the VolumeSnapshots that the volume is made from. */
  usedBy(volume: PersistentVolume): string[] {
    return handles(volume).flatMap((handle) => this.#contents.byIndex(BY_HANDLE, handle).flatMap(snapshotKeysOf));
  }
}

function isFilling({ metadata }: PersistentVolume): boolean {
  return metadata.finalizers?.includes(VOLUME_COPY_FINALIZER) === true;
}

function handles({ spec }: PersistentVolume): string[] {
  const handle = spec.csi?.volumeAttributes?.['snapshot'];
  return handle === undefined ? [] : [handle];
}
