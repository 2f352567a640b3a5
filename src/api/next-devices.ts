/** The devices that a spec asks for, by the ids and kinds that they have in a guest. Pure. */
import { interfacesOf } from '#api/attached-interfaces.ts';
import type { Chipset } from '#api/chipset.ts';
import type { Devices } from '#api/domain/devices.ts';
import type { Disk } from '#api/domain/disk.ts';
import { allowsVideo, asksForVideo, fixedDevices, needsUsb, USB_ID, VIDEO_ID } from '#api/fixtures.ts';
import { busOf, isPlugged } from '#api/disk-bus.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';

export interface NextDevice {
  readonly id: string;
  /** disk, interface, rng, balloon, tpm, console, controller, video, sound ... */
  readonly type: string;
  /** As rows have it: disk, cdrom, virtio, e1000e ... */
  readonly device: string;
  /** Of a disk. */
  readonly bus?: string;
  /** Whether it will be in the guest. */
  readonly plugged: boolean;
  /** Only where the guest had it already: nobody asked for it, and nobody refused it. */
  readonly onlyKept?: boolean;
  /** A PCI address that the spec names. */
  readonly pin?: string;
}

export function nextDevices(spec: VmiSpec, chipset: Chipset | undefined): NextDevice[] {
  const { disks = [], rng, tpm, autoattachMemBalloon, autoattachSerialConsole } = spec.domain.devices ?? {};
  const fixed: [boolean, Omit<NextDevice, 'plugged'>][] = [
    [disks.some((disk) => busOf(disk, chipset) === 'scsi' && isPlugged(disk)), SCSI],
    [needsUsb(spec.domain.devices ?? {}), USB],
    [tpm !== undefined && tpm.enabled !== false, { id: 'tpm0', type: 'tpm', device: 'crb' }],
    [rng !== undefined, { id: 'rng0', type: 'rng', device: 'virtio' }],
    [autoattachMemBalloon !== false, { id: 'balloon0', type: 'balloon', device: 'memballoon' }],
    [autoattachSerialConsole !== false, { id: 'serial0', type: 'console', device: 'serial' }],
  ];
  const video = videoWish(spec.domain.devices ?? {});
  return [
    ...interfacesOf(spec).map(({ name, model = 'virtio', state, pciAddress }): NextDevice => ({
      id: `nic-${name}`,
      type: 'interface',
      device: model,
      plugged: state !== 'absent',
      ...(pciAddress && { pin: pciAddress }),
    })),
    ...disks.map((disk): NextDevice => ({
      id: `disk-${disk.name}`,
      type: 'disk',
      device: mediaOf(disk),
      bus: busOf(disk, chipset),
      plugged: isPlugged(disk),
      ...(disk.disk?.pciAddress && { pin: disk.disk.pciAddress }),
    })),
    ...fixed.flatMap(([isThere, device]) => (isThere ? [{ ...device, plugged: true }] : [])),
    ...(video === undefined ? [] : [{ ...video, plugged: true }]),
    ...fixedDevices(spec.domain.devices ?? {}).map(({ id, type, device, specParams }): NextDevice => ({
      ...{ id, type, device, plugged: true },
      ...(typeof specParams?.['bus'] === 'string' && { bus: specParams['bus'] }),
    })),
  ];
}

/** Undefined where the spec refuses it. */
function videoWish({ video, autoattachGraphicsDevice }: Devices): Omit<NextDevice, 'plugged'> | undefined {
  if (!allowsVideo({ video, autoattachGraphicsDevice })) return undefined;
  const isAsked = asksForVideo({ video, autoattachGraphicsDevice });
  return { id: VIDEO_ID, type: 'video', device: video?.type ?? 'vga', ...(!isAsked && { onlyKept: true }) };
}

/** It stays once it was there, whether or not a disk needs it. */
export const SCSI = { id: 'scsi0', type: 'controller', device: 'virtio-scsi' } as const;

/** So does this one. */
export const USB = { id: USB_ID, type: 'controller', device: 'usb' } as const;

function mediaOf({ cdrom, floppy, lun }: Disk): string {
  if (cdrom !== undefined) return 'cdrom';
  if (floppy !== undefined) return 'floppy';
  return lun === undefined ? 'disk' : 'lun';
}
