/** Domains with all kinds of hardware and without addresses, as libvirt XML. */
import type { Chipset } from '#api/devices/chipset.ts';

export interface Mix {
  readonly chipset: Chipset;
  /** XML of the devices, in the order of the definition. */
  readonly devices: readonly string[];
}

export const MACHINES: Readonly<Record<Chipset, string>> = { i440fx: 'pc-i440fx-7.2', q35: 'pc-q35-7.2' };

export function domainOf({ chipset, devices }: Mix): string {
  return `<domain type='qemu'>
  <name>mix</name>
  <memory unit='MiB'>64</memory>
  <vcpu>1</vcpu>
  <os><type arch='x86_64' machine='${MACHINES[chipset]}'>hvm</type></os>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    ${devices.join('\n    ')}
  </devices>
</domain>`;
}

const hex = (number: number) => number.toString(16).padStart(2, '0');

/** An interface; its MAC address ends with the number. */
export const nic = (number: number, model = 'virtio') =>
  `<interface type='user'><mac address='52:54:00:00:00:${hex(number)}'/><model type='${model}'/></interface>`;

export const letters = (index: number): string =>
  (index >= 26 ? letters(Math.floor(index / 26) - 1) : '') + String.fromCharCode(0x61 + (index % 26));

export const disk = (target: string, bus: string, device = 'disk') =>
  `<disk type='file' device='${device}'><source file='/images/${target}'/><target dev='${target}' bus='${bus}'/></disk>`;

export const cdrom = (target: string, bus: string) =>
  `<disk type='file' device='cdrom'><target dev='${target}' bus='${bus}'/></disk>`;
export const floppy = (target = 'fda') => disk(target, 'fdc', 'floppy');
export const vd = (index: number) => disk(`vd${letters(index)}`, 'virtio');
export const sd = (index: number, bus = 'scsi') => disk(`sd${letters(index)}`, bus);
export const hd = (index: number) => disk(`hd${letters(index)}`, 'ide');
export const sound = (model: string) => `<sound model='${model}'/>`;
export const video = (type: string) => `<video><model type='${type}'/></video>`;
export const balloon = (model: 'virtio' | 'none') => `<memballoon model='${model}'/>`;
export const rng = `<rng model='virtio'><backend model='random'>/dev/urandom</backend></rng>`;
export const watchdog = (model = 'i6300esb') => `<watchdog model='${model}' action='reset'/>`;
export const channel = (name: string) => `<channel type='unix'><target type='virtio' name='${name}'/></channel>`;
export const controller = (type: string, more = '') => `<controller type='${type}' ${more}/>`;
export const scsi = (index: number) => controller('scsi', `index='${index}' model='virtio-scsi'`);
export const serial = `<serial type='pty'><target port='0'/></serial>`;
export const virtioConsole = `<console type='pty'><target type='virtio'/></console>`;
export const input = (type: string, bus: string) => `<input type='${type}' bus='${bus}'/>`;

const many = (count: number, one: (index: number) => string) => Array.from({ length: count }, (_, i) => one(i));

/** USB 2 as managers of its time wrote it: one controller with four functions. */
export const usb2 = [
  controller('usb', "index='0' model='ich9-ehci1'"),
  controller('usb', "index='0' model='ich9-uhci1'").replace('/>', "><master startport='0'/></controller>"),
  controller('usb', "index='0' model='ich9-uhci2'").replace('/>', "><master startport='2'/></controller>"),
  controller('usb', "index='0' model='ich9-uhci3'").replace('/>', "><master startport='4'/></controller>"),
];

/** The sample of the seed as hosts of oVirt 3.0 described it: disks, CD, floppy, channels, NICs and video, in this order. */
export const SEED_SAMPLE = [
  ...[vd(0), vd(1), hd(0), cdrom('hdc', 'ide'), floppy()],
  ...[controller('virtio-serial', "index='0' ports='16'"), channel('com.redhat.rhevm.vdsm'), balloon('none')],
  ...['virtio', 'virtio', 'virtio', 'virtio', 'rtl8139', 'e1000', 'e1000'].map((model, i) => nic(0x42 + i, model)),
  input('mouse', 'ps2'),
  ...many(4, () => video('qxl')),
  channel('com.redhat.spice.0'),
  sound('ich6'),
];

const common: Readonly<Record<string, readonly string[]>> = {
  nothing: [balloon('none')],
  'only what libvirt adds': [],
  'one of everything': [
    video('vga'),
    vd(0),
    nic(1),
    sound('ich6'),
    scsi(0),
    sd(0),
    rng,
    watchdog(),
    channel('org.qemu.guest_agent.0'),
    serial,
  ],
  'one of everything, the other way round': [
    serial,
    channel('org.qemu.guest_agent.0'),
    watchdog(),
    rng,
    sd(0),
    scsi(0),
    sound('ich6'),
    nic(1),
    vd(0),
    video('vga'),
  ],
  'disks before interfaces': [vd(0), vd(1), nic(1), nic(2), video('cirrus')],
  'disks out of order': [vd(3), vd(0), vd(2), vd(1), video('vga')],
  'several interfaces': [...many(5, (i) => nic(i)), video('vga'), vd(0)],
  'interfaces of all models': [nic(1, 'e1000'), nic(2), nic(3, 'rtl8139'), nic(4, 'e1000e'), video('vga'), vd(0)],
  'four video cards': [...many(4, () => video('qxl')), nic(1), vd(0)],
  'video cards of several kinds': [video('bochs'), video('qxl'), video('virtio'), nic(1)],
  'no video card': [nic(1), vd(0), balloon('virtio')],
  'sound ich9': [sound('ich9'), nic(1), vd(0), video('vga')],
  'sound ac97': [sound('ac97'), nic(1), vd(0), video('vga')],
  'two sound cards': [sound('ich9'), sound('ich6'), nic(1), vd(0), video('vga')],
  'sound without PCI': [sound('sb16'), nic(1), vd(0), video('vga')],
  'no balloon': [balloon('none'), nic(1), vd(0), video('vga')],
  'a balloon first': [balloon('virtio'), vd(0), nic(1), video('vga')],
  'a channel and no controller': [channel('org.qemu.guest_agent.0'), vd(0), nic(1), video('vga')],
  'channels and a console': [
    channel('a'),
    virtioConsole,
    channel('org.qemu.guest_agent.0'),
    channel('c'),
    vd(0),
    video('vga'),
  ],
  'a serial port': [serial, vd(0), nic(1), video('vga')],
  'scsi disks and no controller': [sd(0), sd(1), vd(0), nic(1), video('vga')],
  'eight scsi disks': [...many(8, (i) => sd(i)), vd(0), nic(1), video('vga')],
  'a scsi controller after a serial one': [
    controller('virtio-serial', "index='0'"),
    scsi(0),
    sd(0),
    vd(0),
    nic(1),
    video('vga'),
  ],
  'two scsi controllers, the second first': [
    scsi(1),
    controller('virtio-serial', "index='0'"),
    scsi(0),
    sd(0),
    vd(0),
    nic(1),
    video('vga'),
  ],
  'USB 3': [controller('usb', "index='0' model='qemu-xhci'"), nic(1), vd(0), video('vga'), scsi(0)],
  'USB 2 in four functions': [...usb2, nic(1), vd(0), video('vga')],
  'no USB': [controller('usb', "index='0' model='none'"), nic(1), vd(0), video('vga')],
  'a tablet on USB': [input('tablet', 'usb'), nic(1), vd(0), video('vga')],
  'a tablet on virtio': [input('tablet', 'virtio'), nic(1), vd(0), video('vga'), rng],
  'a watchdog': [watchdog(), nic(1), vd(0), video('vga'), video('vga').replace('vga', 'qxl')],
  'a watchdog without PCI': [watchdog('ib700'), nic(1), vd(0), video('vga')],
  'two random number generators': [rng, rng, nic(1), vd(0), video('vga')],
  'cards of all classes twice': [
    ...many(2, (i) => nic(i)),
    ...many(2, (i) => vd(i)),
    sound('ac97'),
    sound('ich6'),
    rng,
    rng,
    video('vga'),
    video('qxl'),
    scsi(0),
    scsi(1),
  ],
};

const onI440fx: Readonly<Record<string, readonly string[]>> = {
  'the sample of the seed': SEED_SAMPLE,
  'disks on every bus': [
    vd(0),
    hd(0),
    hd(1),
    cdrom('hdc', 'ide'),
    hd(3),
    sd(0),
    scsi(0),
    floppy(),
    floppy('fdb'),
    nic(1),
    video('cirrus'),
  ],
  'only IDE': [hd(0), cdrom('hdc', 'ide'), nic(1, 'rtl8139'), video('cirrus'), balloon('none')],
  'twenty-six disks': [...many(26, (i) => vd(25 - i)), video('vga'), nic(1), balloon('none')],
  'the last slot but one': [...many(20, (i) => vd(i)), ...many(7, (i) => nic(i)), video('vga'), balloon('virtio')],
};

const onQ35: Readonly<Record<string, readonly string[]>> = {
  'disks on every bus': [
    vd(0),
    sd(0, 'sata'),
    sd(1, 'sata'),
    cdrom('sdc', 'sata'),
    sd(3),
    scsi(0),
    nic(1),
    video('vga'),
  ],
  'twenty-seven disks': [...many(27, (i) => vd(26 - i)), video('vga'), nic(1), balloon('none')],
  'conventional cards between others': [
    nic(1),
    nic(2, 'rtl8139'),
    nic(3),
    nic(4, 'rtl8139'),
    vd(0),
    vd(1),
    video('vga'),
  ],
  'a conventional card first': [nic(1, 'rtl8139'), nic(2), vd(0), video('vga')],
};

/** Every mix by its name. */
export const MIXES: ReadonlyMap<string, Mix> = new Map(
  (['i440fx', 'q35'] as const).flatMap((chipset) =>
    Object.entries({ ...common, ...(chipset === 'q35' ? onQ35 : onI440fx) }).map(
      ([name, devices]) => [`${chipset}: ${name}`, { chipset, devices }] as const,
    ),
  ),
);
