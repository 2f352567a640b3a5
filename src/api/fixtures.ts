/**
 * Devices besides disks and interfaces that a spec can ask for, by the ids that they have in a guest. Their rows are no
 * hardware that was found: they go when the spec no longer asks for them. Pure.
 */
import type { Devices } from '#api/domain/devices.ts';

export const VIDEO_ID = 'display0';

const IDS = /^(?:display0)$/;

export function isFixtureId(id: string): boolean {
  return IDS.test(id);
}

/** Whether a guest may have a video card: it has one where the spec asks for it, where it had one, and at its first start. */
export function allowsVideo({
  video,
  autoattachGraphicsDevice,
}: Pick<Devices, 'video' | 'autoattachGraphicsDevice'>): boolean {
  return autoattachGraphicsDevice !== false && video?.type !== 'none';
}
