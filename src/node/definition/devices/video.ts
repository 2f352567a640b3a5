/**
 * Defines the video card, and with it the display. As in KubeVirt, a guest has one unless its spec disables it. A guest
 * that has run without a card gets one only if its spec asks for it, because hardware does not appear unasked (ADR 14).
 */
import type { Devices } from '#api/domain/devices.ts';
import { VIDEO_TYPES, type VideoType } from '#api/domain/video.ts';
import { allowsVideo, asksForVideo, VIDEO_ID } from '#api/devices/fixed-devices.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import type { UnplacedDevice } from '#node/definition/addresses/unplaced-device.ts';
import type { VideoDevice } from '#node/hardware/domain-definition.ts';

export function defineVideo(
  { video, autoattachGraphicsDevice }: Devices,
  rows: readonly LearnedDevice[],
): UnplacedDevice<VideoDevice>[] {
  if (!allowsVideo({ video, autoattachGraphicsDevice })) return [];
  const row = rows.find(({ id, plugged }) => id === VIDEO_ID && plugged !== false);
  const isRequested = asksForVideo({ video, autoattachGraphicsDevice });
  if (!isRequested && row === undefined && rows.length > 0) return [];
  const recorded = VIDEO_TYPES.find((type) => type === row?.device);
  const requested = VIDEO_TYPES.find((type) => type === video?.type);
  const model: VideoType = requested ?? recorded ?? 'vga';
  return [{ device: { type: 'video', id: VIDEO_ID, model }, field: 'spec.domain.devices.video' }];
}
