import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BOOT_FIRMWARE_ANNOTATION, encodeBootFirmware, findFirmwareMismatch } from '#api/storage/boot-firmware.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';

type Disk = NonNullable<NonNullable<VmiSpec['domain']['devices']>['disks']>[number];

/** The images of claims, by their name. */
const CLAIMS = Object.entries({ bios: 'bios', efi: 'efi', both: 'bios,efi' }).map(([name, value]) => ({
  metadata: { name, annotations: { [BOOT_FIRMWARE_ANNOTATION]: value } },
}));
const EFI = { bootloader: { efi: { secureBoot: false } } };
const KERNEL = { kernelBoot: { container: { image: 'selfsame/guest' } } };

interface Machine {
  readonly firmware?: VmiSpec['domain']['firmware'];
  /** Claims of the disks; `seed` is a cloud-init disk, and `blank` a claim without an uploaded image. */
  readonly disks: readonly (string | Disk)[];
  readonly nic?: { readonly bootOrder: number };
}

function aSpec({ firmware, disks: named, nic }: Machine): VmiSpec {
  const disks = named.map((one): Disk => (typeof one === 'string' ? { name: one, disk: {} } : one));
  const interfaces = nic && [{ name: 'default', masquerade: {}, ...nic }];
  return {
    domain: { ...(firmware && { firmware }), devices: { disks, ...(interfaces && { interfaces }) } },
    volumes: disks.map(({ name }) =>
      name === 'seed'
        ? { name, cloudInitNoCloud: { userData: '#cloud-config' } }
        : { name, persistentVolumeClaim: { claimName: name } },
    ),
  };
}

const BIOS_VM =
  'the VM boots with BIOS, but the image of PersistentVolumeClaim "efi" has a boot loader for UEFI only; set spec.template.spec.domain.firmware.bootloader.efi, for example to {secureBoot: false}';
const EFI_VM =
  'the VM boots with UEFI, but the image of PersistentVolumeClaim "bios" has a boot loader for BIOS only; remove spec.template.spec.domain.firmware.bootloader.efi';

const cases: Record<string, { machine: Machine; want?: string }> = {
  'a BIOS VM with an image for BIOS': { machine: { disks: ['bios'] } },
  'a BIOS VM with an image for both': { machine: { disks: ['both'] } },
  'a BIOS VM with an image for UEFI only': { machine: { disks: ['efi'] }, want: BIOS_VM },
  'a UEFI VM with an image for UEFI': { machine: { firmware: EFI, disks: ['efi'] } },
  'a UEFI VM with an image for BIOS only': { machine: { firmware: EFI, disks: ['bios'] }, want: EFI_VM },
  'a disk for data and a cloud-init disk beside the image': {
    machine: { disks: ['seed', 'efi', 'blank'] },
    want: BIOS_VM,
  },
  'a blank disk before the image': { machine: { disks: ['blank', 'efi'] } },
  'another disk that boots': { machine: { disks: ['efi', 'both'] } },
  'a boot order with a disk that boots first': {
    machine: {
      disks: [
        { name: 'efi', disk: {}, bootOrder: 2 },
        { name: 'bios', disk: {}, bootOrder: 1 },
      ],
    },
  },
  'a boot order with the image first': {
    machine: { disks: ['blank', { name: 'efi', disk: {}, bootOrder: 1 }] },
    want: BIOS_VM,
  },
  'a VM that boots from the network first': {
    machine: { disks: [{ name: 'efi', disk: {}, bootOrder: 2 }], nic: { bootOrder: 1 } },
  },
  'an image on a disk that is not plugged': { machine: { disks: [{ name: 'efi', disk: {}, plugged: false }] } },
  'a VM with a kernel of its own': { machine: { firmware: KERNEL, disks: ['efi'] } },
  'a VM without disks': { machine: { disks: [] } },
};
for (const [title, { machine, want }] of Object.entries(cases)) {
  test(title, () => assert.equal(findFirmwareMismatch(aSpec(machine), CLAIMS), want));
}

test('the annotation names each firmware that boots, and nothing if none is known', () => {
  assert.equal(encodeBootFirmware({ bios: true, efi: true }), 'bios,efi');
  assert.equal(encodeBootFirmware({ bios: false, efi: true }), 'efi');
  assert.equal(encodeBootFirmware({ bios: false, efi: false }), undefined);
  assert.equal(encodeBootFirmware(undefined), undefined);
});
