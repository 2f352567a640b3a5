import type { VmiVolume } from '#api/domain/volume.ts';

const SOURCES = ['cloudInitNoCloud', 'configMap', 'secret', 'serviceAccount', 'downwardAPI'] as const;

/** Reports whether the content of the volume is generated from API objects when the guest starts. */
export function hasGeneratedContent(volume: VmiVolume): boolean {
  return SOURCES.some((source) => volume[source] !== undefined);
}
