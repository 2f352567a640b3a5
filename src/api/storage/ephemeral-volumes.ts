/** Names of the volumes that were added to an instance for this run only. They are not in the spec of the VM. */
import { EPHEMERAL_HOTPLUG_ANNOTATION } from '#api/names.ts';
import type { KubeObject } from '#kube/meta.ts';

/** Returns no names if the annotation cannot be read. */
export function ephemeralVolumesOf(vmi: Pick<KubeObject, 'metadata'>): readonly string[] {
  return readEphemeralVolumes(vmi) ?? [];
}

/** Returns undefined if the annotation cannot be read: then it is unknown which volumes were added. */
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

/** Returns the value of the annotation, with each name once. */
export function formatEphemeralVolumes(names: readonly string[]): string {
  return JSON.stringify([...new Set(names)]);
}
