/** From the name of a claim to the PersistentVolume behind it, or to why there is none yet. */
import { UPLOAD_ANNOTATION } from '#api/disk-stream.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { VolumeLookups } from '#node/volumes-port.ts';
import { failed, missing, waiting, type Refusal } from './volumes-host.ts';

export interface Bound {
  readonly is: 'bound';
  readonly claim: PersistentVolumeClaim;
  readonly volume: PersistentVolume;
}

export async function volumeOfClaim(
  name: string,
  lookups: Pick<VolumeLookups, 'claim' | 'volume'>,
): Promise<Bound | Refusal> {
  const claim = await lookups.claim(name);
  if (claim === undefined) return missing('FailedMount', `persistentvolumeclaim "${name}" not found`);
  if (claim.status?.phase === 'Lost') {
    return failed(
      'FailedMount',
      `persistentvolumeclaim "${name}" has lost its volume "${claim.spec.volumeName ?? ''}"`,
    );
  }
  if (claim.status?.phase !== 'Bound' || claim.spec.volumeName === undefined) {
    return waiting('VolumeNotBound', `persistentvolumeclaim "${name}" is not bound to a volume yet`);
  }
  const volume = await lookups.volume(claim.spec.volumeName);
  if (volume === undefined) return waiting('FailedMount', `persistentvolume "${claim.spec.volumeName}" not found`);
  // Whoever writes a claim must not get at the volume of another one.
  if (volume.spec.claimRef?.uid !== claim.metadata.uid) {
    return failed(
      'FailedMount',
      `persistentvolume "${claim.spec.volumeName}" is not bound to persistentvolumeclaim "${name}"`,
    );
  }
  return { is: 'bound', claim, volume };
}

/** A guest that was given it before its content has come would take an empty disk for its own. */
export function uploadPending({ metadata }: PersistentVolumeClaim): Refusal | undefined {
  if (metadata.annotations?.[UPLOAD_ANNOTATION] !== 'true') return undefined;
  return waiting(
    'UploadPending',
    `persistentvolumeclaim "${metadata.name}" waits for its content (${UPLOAD_ANNOTATION})`,
  );
}
