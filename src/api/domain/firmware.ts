import { bool, obj, oneOf, str, type Infer } from '#kube/schema-dsl.ts';

const kernelBoot = obj({
  kernelArgs: str({ maxLength: 2048, description: 'The kernel command line.' }),
  container: obj(
    {
      image: str({ description: 'selfsame/guest: the built-in test guest.' }),
      imagePullPolicy: oneOf(['Always', 'IfNotPresent', 'Never']),
      kernelPath: str(),
      initrdPath: str(),
    },
    { required: ['image'] },
  ),
});

export const firmware = obj({
  uuid: str({ description: 'The UUID that the guest sees in SMBIOS.' }),
  serial: str({ maxLength: 256, description: 'The serial number that the guest sees in SMBIOS.' }),
  bootloader: obj({
    bios: obj({}, { description: 'SeaBIOS. This is the default unless efi is set.' }),
    efi: obj({
      secureBoot: bool({ description: 'Enables secure boot, which requires features.smm. Defaults to true.' }),
      persistent: bool({ description: 'True if EFI variables are kept across restarts. Defaults to false.' }),
    }),
  }),
  kernelBoot,
});

export type Firmware = Infer<typeof firmware>;
export type KernelBoot = Infer<typeof kernelBoot>;
