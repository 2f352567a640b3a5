/**
 * The video card, and with it the display. As in KubeVirt a guest has one unless its spec refuses it - but one that has
 * run without keeps to that until its spec asks for a card: hardware does not appear by itself (ADR 14).
 */
import type { Devices } from '#api/domain/devices.ts';
import { VIDEO_TYPES, type VideoType } from '#api/domain/video.ts';
import { allowsVideo, asksForVideo, VIDEO_ID } from '#api/fixtures.ts';
import type { LearnedDevice } from '#api/learned-device.ts';
import type { Unplaced } from '#node/definition/addresses/unplaced.ts';
import type { VideoDevice } from '#node/definition/domain-definition.ts';

export function defineVideo(
  { video, autoattachGraphicsDevice }: Devices,
  rows: readonly LearnedDevice[],
): Unplaced<VideoDevice>[] {
  if (!allowsVideo({ video, autoattachGraphicsDevice })) return [];
  const row = rows.find(({ id, plugged }) => id === VIDEO_ID && plugged !== false);
  const isAsked = asksForVideo({ video, autoattachGraphicsDevice });
  if (!isAsked && row === undefined && rows.length > 0) return [];
  const recorded = VIDEO_TYPES.find((type) => type === row?.device);
  const asked = VIDEO_TYPES.find((type) => type === video?.type);
  const model: VideoType = asked ?? recorded ?? 'vga';
  return [{ device: { type: 'video', id: VIDEO_ID, model }, field: 'spec.domain.devices.video' }];
}
