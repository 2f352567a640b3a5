/** Volumes that an instance got for this run only (addvolume of the instance), by name. The VM knows nothing of them. */
import { EPHEMERAL_HOTPLUG_ANNOTATION } from '#api/names.ts';
import type { KubeObject } from '#kube/meta.ts';

/** What cannot be read names nobody. */
export function ephemeralVolumesOf({ metadata }: Pick<KubeObject, 'metadata'>): string[] {
  const text = metadata.annotations?.[EPHEMERAL_HOTPLUG_ANNOTATION];
  if (text === undefined) return [];
  try {
    const names: unknown = JSON.parse(text);
    return Array.isArray(names) ? names.filter((name) => typeof name === 'string') : [];
  } catch {
    return [];
  }
}

/** The annotation; each name once. */
export function formatEphemeralVolumes(names: readonly string[]): string {
  return JSON.stringify([...new Set(names)]);
}
