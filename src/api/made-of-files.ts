import type { Volume } from '#api/domain/volume.ts';

const SOURCES = ['cloudInitNoCloud', 'configMap', 'secret', 'serviceAccount', 'downwardAPI'] as const;

/** Whether its content is made at the start, of what the API has. */
export function isMadeOfFiles(volume: Volume): boolean {
  return SOURCES.some((source) => volume[source] !== undefined);
}
