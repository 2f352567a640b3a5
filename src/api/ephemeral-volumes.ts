/** Volumes that an instance got for this run only (addvolume of the instance), by name. The VM knows nothing of them. */
import { EPHEMERAL_HOTPLUG_ANNOTATION } from '#api/names.ts';
import type { KubeObject } from '#kube/meta.ts';

/** What cannot be read names nobody. */
export function ephemeralVolumesOf(vmi: Pick<KubeObject, 'metadata'>): readonly string[] {
  return readEphemeralVolumes(vmi) ?? [];
}

/** Undefined where the annotation cannot be read: then nothing is known of what was plugged in by hand. */
export function readEphemeralVolumes({ metadata }: Pick<KubeObject, 'metadata'>): readonly string[] | undefined {
  const text = metadata.annotations?.[EPHEMERAL_HOTPLUG_ANNOTATION];
  if (text === undefined || text === '') return [];
  try {
    const names: unknown = JSON.parse(text);
    return Array.isArray(names) && names.every((name) => typeof name === 'string') ? names : undefined;
  } catch {
    return undefined;
  }
}

/** The annotation; each name once. */
export function formatEphemeralVolumes(names: readonly string[]): string {
  return JSON.stringify([...new Set(names)]);
}
