/**
 * Devices other than disks and interfaces that a spec can ask for, with their ids in the guest. Their rows are removed
 * from the record when the spec no longer asks for them. Pure.
 */
import type { Devices } from '#api/domain/devices.ts';
import { REDIRECTION_SLOTS, type Input } from '#api/domain/hardware.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';

export const VIDEO_ID = 'display0';
export const SOUND_ID = 'audio0';
export const WATCHDOG_ID = 'wdt0';
/** Added with the first device that needs it, and kept, like scsi0. */
export const USB_ID = 'xhci0';

const IDS = /^(?:display0|audio0|wdt0|input-.+|redir-\d+)$/;

export function isFixedDeviceId(id: string): boolean {
  return IDS.test(id);
}

type FixedDevice = Pick<LearnedDevice, 'id' | 'type' | 'device' | 'name' | 'specParams'>;

/**
 * Reports whether the spec allows a video card. The guest has one if the spec asks for it, if it had one, or at its
 * first start.
 */
export function allowsVideo({
  video,
  autoattachGraphicsDevice,
}: Pick<Devices, 'video' | 'autoattachGraphicsDevice'>): boolean {
  return autoattachGraphicsDevice !== false && video?.type !== 'none';
}

export function asksForVideo({
  video,
  autoattachGraphicsDevice,
}: Pick<Devices, 'video' | 'autoattachGraphicsDevice'>): boolean {
  return allowsVideo({ video, autoattachGraphicsDevice }) && (video !== undefined || autoattachGraphicsDevice === true);
}

/** Returns the inputs of the spec, or a USB tablet if the spec wants an input and names none, as in KubeVirt. */
export function inputsOf({ inputs = [], autoattachInputDevice }: Devices): readonly Input[] {
  return autoattachInputDevice === true && inputs.length === 0
    ? [{ name: 'default-0', type: 'tablet', bus: 'usb' }]
    : inputs;
}

/**
 * Returns the devices that the spec asks for explicitly, as rows. Excludes the video card, which a guest may have by
 * default.
 */
export function listFixedDevices(devices: Devices): FixedDevice[] {
  const { sound, watchdog, clientPassthrough } = devices;
  return [
    ...(sound === undefined ? [] : [{ id: SOUND_ID, type: 'sound', device: sound.model ?? 'ich9', name: sound.name }]),
    ...(watchdog === undefined
      ? []
      : [
          {
            ...{ id: WATCHDOG_ID, type: 'watchdog', device: 'i6300esb', name: watchdog.name },
            specParams: { action: watchdog.i6300esb?.action ?? 'reset' },
          },
        ]),
    ...inputsOf(devices).map(({ name, type, bus = 'usb' }) => ({
      id: `input-${name}`,
      type: 'input',
      device: type,
      name,
      specParams: { bus },
    })),
    ...Array.from({ length: clientPassthrough === undefined ? 0 : REDIRECTION_SLOTS }, (_, i) => ({
      id: `redir-${i}`,
      type: 'redir',
      device: 'usbredir',
    })),
  ];
}

/** Reports whether a device needs a USB controller. */
export function needsUsb(devices: Devices): boolean {
  const { disks = [], clientPassthrough } = devices;
  return (
    clientPassthrough !== undefined ||
    inputsOf(devices).some(({ bus = 'usb' }) => bus === 'usb') ||
    disks.some(({ disk, plugged }) => disk?.bus === 'usb' && plugged !== false)
  );
}
