import type { Chipset } from '#api/devices/chipset.ts';
import type { SoundDevice } from '#node/hardware/domain-definition.ts';
import { deviceArguments, optionText } from '#node/hypervisor/qemu/arguments/option-text.ts';
import { pciPlace } from '#node/hypervisor/qemu/arguments/pci-place.ts';

/** Builds the arguments of a sound card. The sound is discarded: else QEMU would use sound devices of the host. */
export function soundArguments(sound: SoundDevice, chipset: Chipset): string[] {
  const audiodev = `snd-${sound.id}`;
  const place = pciPlace(sound, chipset);
  const nowhere = ['-audiodev', optionText('none', { id: audiodev })];
  if (sound.model === 'ac97')
    return [...nowhere, ...deviceArguments({ driver: 'AC97', id: sound.id, ...place, audiodev })];
  return [
    ...nowhere,
    ...deviceArguments({ driver: 'ich9-intel-hda', id: sound.id, ...place }),
    // The codec is part of the card, so it has no id and no row in the identity record.
    ...deviceArguments({ driver: 'hda-duplex', bus: `${sound.id}.0`, cad: 0, audiodev }),
  ];
}
