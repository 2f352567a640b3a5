/** Finds the PersistentVolume of a claim, or the reason why there is none yet. */
import { UPLOAD_ANNOTATION } from '#api/storage/disk-stream.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { VolumeLookups } from '#node/volumes/volumes-port.ts';
import { failedRefusal, missingRefusal, waitingRefusal, type VolumeRefusal } from '#node/volumes/local/volumes-host.ts';

export interface BoundVolume {
  readonly is: 'bound';
  readonly claim: PersistentVolumeClaim;
  readonly volume: PersistentVolume;
}

export async function volumeOfClaim(
  name: string,
  lookups: Pick<VolumeLookups, 'claim' | 'volume'>,
): Promise<BoundVolume | VolumeRefusal> {
  const claim = await lookups.claim(name);
  if (claim === undefined) return missingRefusal('FailedMount', `persistentvolumeclaim "${name}" not found`);
  if (claim.status?.phase === 'Lost') {
    return failedRefusal(
      'FailedMount',
      `persistentvolumeclaim "${name}" has lost its volume "${claim.spec.volumeName ?? ''}"`,
    );
  }
  if (claim.status?.phase !== 'Bound' || claim.spec.volumeName === undefined) {
    return waitingRefusal('VolumeNotBound', `persistentvolumeclaim "${name}" is not bound to a volume yet`);
  }
  const volume = await lookups.volume(claim.spec.volumeName);
  if (volume === undefined)
    return waitingRefusal('FailedMount', `persistentvolume "${claim.spec.volumeName}" not found`);
  // Otherwise a user could access the volume of another claim by writing its name into a claim.
  if (volume.spec.claimRef?.uid !== claim.metadata.uid) {
    return failedRefusal(
      'FailedMount',
      `persistentvolume "${claim.spec.volumeName}" is not bound to persistentvolumeclaim "${name}"`,
    );
  }
  return { is: 'bound', claim, volume };
}

/** Refuses a claim that waits for an upload, so that no guest starts with an empty disk. */
export function refusePendingUpload({ metadata }: PersistentVolumeClaim): VolumeRefusal | undefined {
  if (metadata.annotations?.[UPLOAD_ANNOTATION] !== 'true') return undefined;
  return waitingRefusal(
    'UploadPending',
    `persistentvolumeclaim "${metadata.name}" waits for its content (${UPLOAD_ANNOTATION})`,
  );
}
