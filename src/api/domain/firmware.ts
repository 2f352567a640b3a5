import { bool, obj, oneOf, str, type Infer } from '#kube/schema-dsl.ts';

export const kernelBoot = obj({
  kernelArgs: str({ maxLength: 2048, description: 'The command line of the kernel.' }),
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
    bios: obj({}, { description: 'SeaBIOS; what is used unless efi is set.' }),
    efi: obj({
      secureBoot: bool({ description: 'Secure boot, on unless set to false; needs features.smm.' }),
      persistent: bool({ description: 'Whether EFI variables outlive a restart.' }),
    }),
  }),
  kernelBoot,
});

export type Firmware = Infer<typeof firmware>;
export type KernelBoot = Infer<typeof kernelBoot>;
