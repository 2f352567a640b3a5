/** Arguments of a device that came with an imported machine, at its original address. */
import type { Chipset } from '#api/devices/chipset.ts';
import type { OtherDevice } from '#node/hardware/domain-definition.ts';
import { deviceArguments, optionText } from '#node/hypervisor/qemu/arguments/option-text.ts';
import { pciPlace } from '#node/hypervisor/qemu/arguments/pci-place.ts';

/** Sound cards that need an audio backend; without it, QEMU would look for sound devices of the host. */
const WITH_SOUND: ReadonlySet<string> = new Set(['AC97']);

export function otherArguments({ id, driver, ...device }: OtherDevice, chipset: Chipset): string[] {
  const place = pciPlace({ id, ...device }, chipset);
  if (!WITH_SOUND.has(driver)) return deviceArguments({ driver, id, ...place });
  const audiodev = `audio-${id}`;
  return ['-audiodev', optionText('none', { id: audiodev }), ...deviceArguments({ driver, id, ...place, audiodev })];
}
