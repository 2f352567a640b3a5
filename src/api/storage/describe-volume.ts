/** Names a volume of an instance in messages. Pure. */
import type { VmiVolume } from '#api/domain/volume.ts';
import { claimNameOf } from '#api/storage/claim-names.ts';

/** Returns the volume with its claim, if it has one. `volume` is undefined if the spec no longer has it. */
export function describeVolume(name: string, volume: VmiVolume | undefined): string {
  const claimName = volume && claimNameOf(volume);
  return claimName === undefined ? `volume "${name}"` : `volume "${name}" (PersistentVolumeClaim "${claimName}")`;
}
