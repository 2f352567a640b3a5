/** Devices that a guest has at most a few of: sound, watchdog, inputs, USB redirection. */
import { int32, list, obj, oneOf, str, type Infer } from '#kube/schema-dsl.ts';

const name = str({ minLength: 1, maxLength: 63, pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$' });

export const SOUND_MODELS = ['ich9', 'ac97'] as const;
export const WATCHDOG_ACTIONS = ['poweroff', 'reset', 'shutdown'] as const;
export const INPUT_BUSES = ['usb', 'virtio'] as const;

export const sound = obj(
  { name, model: oneOf(SOUND_MODELS, { description: 'ich9 unless set.' }) },
  { required: ['name'], description: 'A sound card. What it plays nobody hears.' },
);

export const watchdog = obj(
  {
    name,
    i6300esb: obj(
      {
        action: oneOf(WATCHDOG_ACTIONS, {
          description: 'What happens when the guest no longer answers; reset unless set.',
        }),
      },
      { description: 'A PCI watchdog.' },
    ),
  },
  { required: ['name'] },
);

export const inputs = list(
  obj(
    {
      name,
      type: oneOf(['tablet'], { description: 'tablet: a pointer that is where the mouse of the viewer is.' }),
      bus: oneOf(INPUT_BUSES, { description: 'usb unless set.' }),
    },
    { required: ['name', 'type'] },
  ),
  { maxItems: 8 },
);

export const clientPassthrough = obj({}, { description: 'Four slots for USB devices of whoever looks at the VM.' });
export const REDIRECTION_SLOTS = 4;

/** acpi-index of QEMU. */
export const acpiIndex = int32({ minimum: 1, maximum: 16_383, description: 'What the guest names it after: eno<n>.' });

export type Sound = Infer<typeof sound>;
export type Watchdog = Infer<typeof watchdog>;
export type Input = NonNullable<Infer<typeof inputs>>[number];
export type SoundModel = (typeof SOUND_MODELS)[number];
export type WatchdogAction = (typeof WATCHDOG_ACTIONS)[number];
export type InputBus = (typeof INPUT_BUSES)[number];
