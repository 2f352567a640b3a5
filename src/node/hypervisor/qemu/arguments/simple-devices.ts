/** Arguments of the devices that need only a few options. Disks, interfaces and USB have their own files. */
import { AGENT_PORT_NAME } from '#api/devices/agent-channel.ts';
import type { Chipset } from '#api/devices/chipset.ts';
import type { VideoType } from '#api/domain/video.ts';
import { invariant } from '#lib/invariant.ts';
import type {
  AgentChannel,
  BalloonDevice,
  OtherDevice,
  RngDevice,
  RootPort,
  ScsiController,
  SerialDevice,
  SoundDevice,
  TpmDevice,
  VideoDevice,
  WatchdogDevice,
} from '#node/hardware/domain-definition.ts';
import { deviceArguments, optionText } from '#node/hypervisor/qemu/arguments/option-text.ts';
import { pciPlace } from '#node/hypervisor/qemu/arguments/pci-place.ts';
import type { QemuHost } from '#node/hypervisor/qemu/arguments/qemu-host.ts';

/**
 * Builds the arguments of a root port. `slot` is 0, as in libvirt: with other values, guests would name interfaces after
 * them (ens1 instead of enp1s0).
 */
export function rootPortArguments(port: RootPort): string[] {
  const place = pciPlace(port, 'q35');
  return deviceArguments({
    driver: 'pcie-root-port',
    id: port.id,
    ...place,
    chassis: port.index + 1,
    ...(place.addr.endsWith('.0x0') && { multifunction: true }),
  });
}

export function scsiControllerArguments(controller: ScsiController, chipset: Chipset): string[] {
  const { id, queues } = controller;
  return deviceArguments({
    driver: 'virtio-scsi-pci',
    id,
    ...pciPlace(controller, chipset),
    ...(queues !== undefined && { num_queues: queues }),
  });
}

/** Builds the arguments of a TPM, which is a swtpm that listens on the socket before QEMU starts. */
export function tpmArguments({ id, model }: TpmDevice, { tpmSocket }: QemuHost): string[] {
  invariant(tpmSocket !== undefined, 'a guest with a TPM has its socket');
  const chardev = `chr-${id}`;
  const tpmdev = `dev-${id}`;
  return [
    '-chardev',
    optionText('socket', { id: chardev, path: tpmSocket }),
    '-tpmdev',
    optionText('emulator', { id: tpmdev, chardev }),
    ...deviceArguments({ driver: `tpm-${model}`, id, tpmdev }),
  ];
}

export function rngArguments(rng: RngDevice, chipset: Chipset): string[] {
  const source = { 'qom-type': 'rng-random', id: `obj-${rng.id}`, filename: '/dev/urandom' };
  return [
    '-object',
    JSON.stringify(source),
    ...deviceArguments({ driver: 'virtio-rng-pci', id: rng.id, ...pciPlace(rng, chipset), rng: source.id }),
  ];
}

export function balloonArguments(balloon: BalloonDevice, chipset: Chipset): string[] {
  return deviceArguments({ driver: 'virtio-balloon-pci', id: balloon.id, ...pciPlace(balloon, chipset) });
}

/** Builds the arguments of the serial port. Index 0 is COM1: port 0x3f8, IRQ 4. */
export function serialArguments({ id }: SerialDevice, { serialSocket }: QemuHost): string[] {
  const chardev = `chr-${id}`;
  return [
    '-chardev',
    optionText('socket', { id: chardev, path: serialSocket, server: true, wait: false }),
    ...deviceArguments({ driver: 'isa-serial', id, bus: 'isa.0', index: 0, chardev }),
  ];
}

export function agentChannelArguments({ id, controller, address }: AgentChannel, { agentSocket }: QemuHost): string[] {
  const chardev = `chr-${id}`;
  const nr = Number(address?.['port']);
  invariant(nr >= 1, `${id} has a port`);
  return [
    '-chardev',
    optionText('socket', { id: chardev, path: agentSocket, server: true, wait: false }),
    ...deviceArguments({ driver: 'virtserialport', id, bus: `${controller}.0`, nr, chardev, name: AGENT_PORT_NAME }),
  ];
}

/** `virtio` has VGA registers, so that firmware and boot loaders can use the display, too. */
const VIDEO_DRIVERS: Readonly<Record<VideoType, string>> = {
  vga: 'VGA',
  virtio: 'virtio-vga',
  bochs: 'bochs-display',
  cirrus: 'cirrus-vga',
};

export function videoArguments(video: VideoDevice, chipset: Chipset): string[] {
  return deviceArguments({ driver: VIDEO_DRIVERS[video.model], id: video.id, ...pciPlace(video, chipset) });
}

export function soundArguments(sound: SoundDevice, chipset: Chipset): string[] {
  const audiodev = `snd-${sound.id}`;
  const place = pciPlace(sound, chipset);
  const nowhere = silentBackend(audiodev);
  if (sound.model === 'ac97')
    return [...nowhere, ...deviceArguments({ driver: 'AC97', id: sound.id, ...place, audiodev })];
  return [
    ...nowhere,
    ...deviceArguments({ driver: 'ich9-intel-hda', id: sound.id, ...place }),
    // The codec is part of the card, so it has no id and no row in the identity record.
    ...deviceArguments({ driver: 'hda-duplex', bus: `${sound.id}.0`, cad: 0, audiodev }),
  ];
}

export function watchdogArguments(watchdog: WatchdogDevice, chipset: Chipset): string[] {
  return [
    ...deviceArguments({ driver: 'i6300esb', id: watchdog.id, ...pciPlace(watchdog, chipset) }),
    '-action',
    `watchdog=${watchdog.action}`,
  ];
}

/** Sound cards that need an audio backend. */
const WITH_SOUND: ReadonlySet<string> = new Set(['AC97']);

/** Builds the arguments of a device that came with an imported machine, at its original address. */
export function otherArguments({ id, driver, ...device }: OtherDevice, chipset: Chipset): string[] {
  const place = pciPlace({ id, ...device }, chipset);
  if (!WITH_SOUND.has(driver)) return deviceArguments({ driver, id, ...place });
  const audiodev = `audio-${id}`;
  return [...silentBackend(audiodev), ...deviceArguments({ driver, id, ...place, audiodev })];
}

/** Returns an audio backend that discards the sound: without one, QEMU would use sound devices of the host. */
function silentBackend(id: string): string[] {
  return ['-audiodev', optionText('none', { id })];
}
