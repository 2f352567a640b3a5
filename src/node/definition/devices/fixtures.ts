/** Defines sound card, watchdog, inputs, USB redirection and the USB controller that some of them need. */
import { vcpusOf } from '#api/domain/cpu.ts';
import type { Devices } from '#api/domain/devices.ts';
import type { DomainSpec } from '#api/domain/domain.ts';
import { REDIRECTION_SLOTS } from '#api/domain/hardware.ts';
import { inputsOf, needsUsb, SOUND_ID, USB_ID, WATCHDOG_ID } from '#api/devices/fixed-devices.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import type { FieldError } from '#kube/field-error.ts';
import type { UnplacedDevice } from '#node/definition/addresses/unplaced-device.ts';
import { checkDeviceNames } from '#node/definition/devices/device-name.ts';
import type {
  InputDevice,
  RedirectionDevice,
  SoundDevice,
  UsbController,
  WatchdogDevice,
} from '#node/hardware/domain-definition.ts';

const FIELD = 'spec.domain.devices';

type Fixture = UsbController | InputDevice | SoundDevice | WatchdogDevice | RedirectionDevice;

export function defineFixtures(
  devices: Devices,
  rows: readonly LearnedDevice[],
  problems: FieldError[],
): UnplacedDevice<Fixture>[] {
  return [
    ...defineUsbController(devices, rows),
    ...defineWatchdog(devices),
    ...defineSound(devices),
    ...defineInputs(devices, problems),
    ...defineRedirections(devices),
  ];
}

/** Defines the USB controller. Like the SCSI controller, it comes with the first device that needs it and then stays. */
function defineUsbController(devices: Devices, rows: readonly LearnedDevice[]): UnplacedDevice<UsbController>[] {
  const isWanted = needsUsb(devices) || rows.some(({ id }) => id === USB_ID);
  return isWanted ? [{ device: { type: 'usb-controller', id: USB_ID }, field: FIELD }] : [];
}

function defineWatchdog({ watchdog }: Devices): UnplacedDevice<WatchdogDevice>[] {
  if (watchdog === undefined) return [];
  const action = watchdog.i6300esb?.action ?? 'reset';
  return [{ device: { type: 'watchdog', id: WATCHDOG_ID, name: watchdog.name, action }, field: `${FIELD}.watchdog` }];
}

function defineSound({ sound }: Devices): UnplacedDevice<SoundDevice>[] {
  if (sound === undefined) return [];
  const model = sound.model ?? 'ich9';
  return [{ device: { type: 'sound', id: SOUND_ID, name: sound.name, model }, field: `${FIELD}.sound` }];
}

function defineInputs(devices: Devices, problems: FieldError[]): UnplacedDevice<InputDevice>[] {
  const inputs = inputsOf(devices);
  const names = inputs.map(({ name }) => name);
  problems.push(...checkDeviceNames(names, `${FIELD}.inputs`));
  return inputs.map(({ name, bus = 'usb' }, i) => ({
    device: { type: 'input', id: `input-${name}`, name, bus },
    field: `${FIELD}.inputs[${i}]`,
  }));
}

function defineRedirections({ clientPassthrough }: Devices): UnplacedDevice<RedirectionDevice>[] {
  const count = clientPassthrough === undefined ? 0 : REDIRECTION_SLOTS;
  return Array.from({ length: count }, (_, i) => ({
    device: { type: 'redirection', id: `redir-${i}` },
    field: `${FIELD}.clientPassthrough`,
  }));
}

/** Returns one queue for each processor if the spec asks for multiple queues, otherwise undefined. */
export function diskQueues({ devices, ...domain }: DomainSpec): number | undefined {
  return devices?.blockMultiQueue === true ? vcpusOf(domain) : undefined;
}
