/** Schemas of minor devices: sound, watchdog, inputs, USB redirection. */
import { int32, list, obj, oneOf, str, type Infer } from '#kube/schema-dsl.ts';

const name = str({ minLength: 1, maxLength: 63, pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$' });

export const SOUND_MODELS = ['ich9', 'ac97'] as const;
export const WATCHDOG_ACTIONS = ['poweroff', 'reset', 'shutdown'] as const;
export const INPUT_BUSES = ['usb', 'virtio'] as const;

export const sound = obj(
  { name, model: oneOf(SOUND_MODELS, { description: 'Defaults to ich9.' }) },
  { required: ['name'], description: 'A sound card. Its output is discarded.' },
);

export const watchdog = obj(
  {
    name,
    i6300esb: obj(
      {
        action: oneOf(WATCHDOG_ACTIONS, {
          description: 'The action if the guest no longer responds. Defaults to reset.',
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
      type: oneOf(['tablet'], {
        description: 'tablet: an absolute pointing device, which follows the mouse of the VNC viewer.',
      }),
      bus: oneOf(INPUT_BUSES, { description: 'Defaults to usb.' }),
    },
    { required: ['name', 'type'] },
  ),
  { maxItems: 8 },
);

export const clientPassthrough = obj(
  {},
  { description: 'Four slots for USB devices that a client redirects to the guest.' },
);
export const REDIRECTION_SLOTS = 4;

/** The acpi-index of QEMU. */
export const acpiIndex = int32({
  minimum: 1,
  maximum: 16_383,
  description: 'The guest derives the name of the interface from this number: eno<n>.',
});

export type Input = NonNullable<Infer<typeof inputs>>[number];
export type SoundModel = (typeof SOUND_MODELS)[number];
export type WatchdogAction = (typeof WATCHDOG_ACTIONS)[number];
export type InputBus = (typeof INPUT_BUSES)[number];
