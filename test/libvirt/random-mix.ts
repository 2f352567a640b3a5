/** Random hardware in a random order. */
import type { Chipset } from '#api/devices/chipset.ts';
import * as mixes from '#test/libvirt/mixes.ts';
import type { SeededRandom } from '#test/support/seeded-random.ts';

const NIC_MODELS = ['virtio', 'virtio', 'e1000e', 'e1000', 'rtl8139'];
const SOUNDS = ['ich6', 'ich9', 'ac97', 'sb16'];

export function randomMix(random: SeededRandom, chipset: Chipset): mixes.Mix {
  const times = (most: number, one: (index: number) => string) =>
    Array.from({ length: random.between(0, most) }, (_, i) => one(i));
  const maybe = (item: string, chance = 0.5) => (random.chance(chance) ? [item] : []);
  const isQ35 = chipset === 'q35';
  const scsiDisks = times(9, (i) => mixes.sd(i));
  const devices = [
    ...times(5, (i) => mixes.nic(i, random.pick(NIC_MODELS))),
    ...times(4, (i) => mixes.vd(i)),
    ...(random.chance(0.4) ? scsiDisks : []),
    ...(random.chance(0.4) ? times(3, (i) => mixes.scsi(i)) : []),
    ...(isQ35 ? [] : [...times(2, (i) => mixes.hd(i)), ...maybe(mixes.cdrom('hdc', 'ide')), ...maybe(mixes.floppy())]),
    ...times(2, () => mixes.sound(random.pick(SOUNDS))),
    ...maybe(mixes.balloon(random.pick(['virtio', 'none']))),
    ...times(2, () => mixes.rng),
    ...maybe(mixes.watchdog(random.pick(['i6300esb', 'ib700'])), 0.3),
    ...maybe(mixes.serial),
    ...maybe(mixes.controller('virtio-serial', "index='0'"), 0.3),
    ...times(2, (i) => mixes.channel(`channel.${i}`)),
    ...maybe(mixes.virtioConsole, 0.2),
    ...maybe(mixes.input('tablet', random.pick(['usb', 'virtio'])), 0.3),
  ];
  const usb = random.pick([[], [], mixes.usb2, [mixes.controller('usb', "index='0' model='qemu-xhci'")]]);
  const videos = random.chance(0.8)
    ? [mixes.video(random.pick(['vga', 'cirrus', 'qxl'])), ...times(2, () => mixes.video('qxl'))]
    : [];
  // The first video card is the primary one; all other devices are in random order.
  return { chipset, devices: [...videos.slice(0, 1), ...shuffled([...devices, ...usb, ...videos.slice(1)], random)] };
}

function shuffled<T>(items: readonly T[], random: SeededRandom): readonly T[] {
  return items
    .map((item) => ({ item, at: random.next() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item);
}
