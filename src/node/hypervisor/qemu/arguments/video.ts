import type { Chipset } from '#api/devices/chipset.ts';
import type { VideoType } from '#api/domain/video.ts';
import type { VideoDevice } from '#node/hardware/domain-definition.ts';
import { deviceArguments } from '#node/hypervisor/qemu/arguments/option-text.ts';
import { pciPlace } from '#node/hypervisor/qemu/arguments/pci-place.ts';

/** `virtio` has VGA registers, so that firmware and boot loaders can use the display, too. */
const DRIVERS: Readonly<Record<VideoType, string>> = {
  vga: 'VGA',
  virtio: 'virtio-vga',
  bochs: 'bochs-display',
  cirrus: 'cirrus-vga',
};

export function videoArguments(video: VideoDevice, chipset: Chipset): string[] {
  return deviceArguments({ driver: DRIVERS[video.model], id: video.id, ...pciPlace(video, chipset) });
}
