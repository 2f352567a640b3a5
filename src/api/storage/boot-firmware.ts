/**
 * The firmware for which an uploaded image has a boot loader, recorded on its claim, and VMs whose firmware is another one.
 * Only images that are known to boot with the other firmware count: everything else may have changed since, or may not
 * be meant to boot. Pure.
 */
import { interfacesOf } from '#api/devices/attached-interfaces.ts';
import { claimNameOf } from '#api/storage/claim-names.ts';
import { hasGeneratedContent } from '#api/storage/generated-content.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';

/** On claims with an uploaded image: `bios`, `efi` or `bios,efi`. Absent if it is not known, or neither boots. */
export const BOOT_FIRMWARE_ANNOTATION = 'selfsame.io/boot-firmware';

/** Returns the value of the annotation, or undefined if there is nothing to record. */
export function encodeBootFirmware(support: { readonly bios: boolean; readonly efi: boolean } | undefined) {
  const names = [...(support?.bios ? ['bios'] : []), ...(support?.efi ? ['efi'] : [])];
  return names.length === 0 ? undefined : names.join(',');
}

type Firmware = 'BIOS' | 'UEFI';

/** Returns the firmware that can boot the image, if there is only one. */
export function soleBootFirmware(annotation: string | undefined): Firmware | undefined {
  return annotation === 'bios' ? 'BIOS' : annotation === 'efi' ? 'UEFI' : undefined;
}

/** Returns a sentence about an instance whose first boot disk has a boot loader for the other firmware only, or undefined. */
export function findFirmwareMismatch(
  spec: VmiSpec,
  claims: readonly Pick<PersistentVolumeClaim, 'metadata'>[],
): string | undefined {
  const { firmware } = spec.domain;
  if (firmware?.kernelBoot !== undefined) return undefined;
  const own: Firmware = firmware?.bootloader?.efi === undefined ? 'BIOS' : 'UEFI';
  const annotationOf = (name: string | undefined) =>
    claims.find(({ metadata }) => metadata.name === name)?.metadata.annotations?.[BOOT_FIRMWARE_ANNOTATION];
  const [first, ...others] = listBootClaims(spec);
  const image = soleBootFirmware(annotationOf(first));
  if (image === undefined || image === own) return undefined;
  // The firmware may continue with another disk that it can boot.
  const bootsOther = others
    .map(annotationOf)
    .some((value) => value?.split(',').includes(own === 'BIOS' ? 'bios' : 'efi'));
  if (bootsOther) return undefined;
  const field = 'spec.template.spec.domain.firmware.bootloader';
  const remedy = image === 'UEFI' ? `set ${field}.efi, for example to {secureBoot: false}` : `remove ${field}.efi`;
  return `the VM boots with ${own}, but the image of PersistentVolumeClaim "${first}" has a boot loader for ${image} only; ${remedy}`;
}

/**
 * Returns the claims of the disks that the firmware boots, in their order; undefined for other volumes. Disks with
 * generated content are left out: they never boot.
 */
function listBootClaims(spec: VmiSpec): (string | undefined)[] {
  const disks = (spec.domain.devices?.disks ?? []).filter(({ plugged }) => plugged !== false);
  const devices = [
    ...disks.map(({ name, bootOrder, floppy }) => ({ volume: name, bootOrder, isDefault: floppy === undefined })),
    ...interfacesOf(spec).map(({ bootOrder }) => ({ volume: undefined, bootOrder, isDefault: false })),
  ];
  const ordered = devices
    .filter(({ bootOrder }) => bootOrder !== undefined)
    .toSorted((a, b) => (a.bootOrder ?? 0) - (b.bootOrder ?? 0));
  const candidates = ordered.length > 0 ? ordered : devices.filter(({ isDefault }) => isDefault);
  return candidates.flatMap(({ volume: name }) => {
    const volume = spec.volumes?.find((one) => one.name === name);
    if (volume !== undefined && hasGeneratedContent(volume)) return [];
    return [volume && claimNameOf(volume)];
  });
}
