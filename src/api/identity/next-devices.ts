/** Lists the devices that a spec asks for, with their ids and kinds in the guest. Pure. */
import { interfacesOf } from '#api/devices/attached-interfaces.ts';
import type { Chipset } from '#api/devices/chipset.ts';
import type { Devices } from '#api/domain/devices.ts';
import type { Disk } from '#api/domain/disk.ts';
import { allowsVideo, asksForVideo, listFixedDevices, needsUsb, USB_ID, VIDEO_ID } from '#api/devices/fixed-devices.ts';
import { busOf, isPlugged } from '#api/devices/disk-bus.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';

export interface NextDevice {
  readonly id: string;
  /** disk, interface, rng, balloon, tpm, console, controller, video, sound ... */
  readonly type: string;
  /** The kind within the type, as in rows: disk, cdrom, virtio, e1000e ... */
  readonly device: string;
  /** The bus of a disk or an input. */
  readonly bus?: string;
  /** True if the device will be present in the guest. */
  readonly plugged: boolean;
  /** True if the guest keeps the device only if it had it: the spec neither asks for it nor excludes it. */
  readonly onlyKept?: boolean;
  /** The PCI address in the spec. */
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
  const video = nextVideo(spec.domain.devices ?? {});
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
    ...fixed.flatMap(([isPresent, device]) => (isPresent ? [{ ...device, plugged: true }] : [])),
    ...(video === undefined ? [] : [{ ...video, plugged: true }]),
    ...listFixedDevices(spec.domain.devices ?? {}).map(({ id, type, device, specParams }): NextDevice => ({
      ...{ id, type, device, plugged: true },
      ...(typeof specParams?.['bus'] === 'string' && { bus: specParams['bus'] }),
    })),
  ];
}

/** Returns undefined if the spec excludes a video card. */
function nextVideo({ video, autoattachGraphicsDevice }: Devices): Omit<NextDevice, 'plugged'> | undefined {
  if (!allowsVideo({ video, autoattachGraphicsDevice })) return undefined;
  const isRequested = asksForVideo({ video, autoattachGraphicsDevice });
  return { id: VIDEO_ID, type: 'video', device: video?.type ?? 'vga', ...(!isRequested && { onlyKept: true }) };
}

/** Kept once the guest has had it, whether or not a disk needs it. */
export const SCSI = { id: 'scsi0', type: 'controller', device: 'virtio-scsi' } as const;

/** Kept like the SCSI controller. */
export const USB = { id: USB_ID, type: 'controller', device: 'usb' } as const;

function mediaOf({ cdrom, floppy, lun }: Disk): string {
  if (cdrom !== undefined) return 'cdrom';
  if (floppy !== undefined) return 'floppy';
  return lun === undefined ? 'disk' : 'lun';
}
