/** The words of OVFs: namespaces, numbers of resources, models. oVirt's are literal; ours stand in a namespace of our own. */
import type { Chipset } from '#api/chipset.ts';
import type { DiskBus } from '#api/domain/disk.ts';
import { INTERFACE_MODELS, type InterfaceModel } from '#api/domain/interface.ts';
import type { FirmwareKind } from '#formats/machine.ts';

/** Ends in a slash with oVirt, and has none in the standard. */
export const OVF = 'http://schemas.dmtf.org/ovf/envelope/1';
export const OVF_OVIRT = `${OVF}/`;
export const RASD = 'http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData';
export const VSSD = 'http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_VirtualSystemSettingData';
export const XSI = 'http://www.w3.org/2001/XMLSchema-instance';
/** What oVirt has no place for. */
export const OWN = 'https://selfsame.io/ovf/1';
export const OWN_VERSION = '1';
/** The oVirt whose shape we write. */
export const WRITTEN_AS = '4.4.0.0';

export const RESOURCE = {
  other: 0,
  cpu: 3,
  memory: 4,
  ide: 5,
  scsi: 6,
  network: 10,
  floppy: 14,
  cdrom: 15,
  dvd: 16,
  disk: 17,
  /** A monitor with oVirt, another controller of disks (SATA) with everybody else. */
  monitor: 20,
  usb: 23,
  graphicsOva: 24,
  graphics: 26,
  monitorOva: 32_768,
} as const;

/** What a ResourceType means where the Item does not say more. */
export const TYPE_OF_RESOURCE: Readonly<Record<number, readonly [type: string, device: string]>> = {
  [RESOURCE.monitor]: ['video', 'cirrus'],
  [RESOURCE.monitorOva]: ['video', 'cirrus'],
  [RESOURCE.usb]: ['controller', 'usb'],
  [RESOURCE.graphics]: ['graphics', 'spice'],
  [RESOURCE.graphicsOva]: ['graphics', 'spice'],
};

export const INTERFACE_OF_BUS: Readonly<Record<DiskBus, string>> = {
  virtio: 'VirtIO',
  scsi: 'VirtIO_SCSI',
  ide: 'IDE',
  sata: 'SATA',
  usb: 'USB',
};

/** Undefined for what we do not have: SPAPR_VSCSI. */
export function busOfInterface(text: string): DiskBus | undefined {
  return (Object.keys(INTERFACE_OF_BUS) as DiskBus[]).find(
    (bus) => INTERFACE_OF_BUS[bus].toLowerCase() === text.toLowerCase(),
  );
}

/** oVirt's numbers; 0 offers two to the guest, of which pv is the one that lasts. */
const MODEL_NUMBERS: readonly (InterfaceModel | undefined)[] = [
  'virtio',
  'rtl8139',
  'e1000',
  'virtio',
  undefined,
  undefined,
  'e1000e',
];

/** By name where oVirt has no number for it. */
export function subTypeOfModel(model: InterfaceModel): number | string {
  return { virtio: 3, rtl8139: 1, e1000: 2, e1000e: 6, pcnet: 'PCNet32', ne2k_pci: 'ne2k_pci' }[model];
}

/** Undefined for what we do not have: VmxNet3, PCI passthrough. */
export function modelOfSubType(text: string): InterfaceModel | undefined {
  if (/^[0-9]$/.test(text)) return MODEL_NUMBERS[Number(text)];
  const word = text.toLowerCase();
  if (word === 'pv' || word === 'virtio' || word === 'virtionet') return 'virtio';
  if (word === 'pcnet32') return 'pcnet';
  return INTERFACE_MODELS.find((model) => model === word);
}

/** By BiosType. An OVF without one is of an i440fx. */
export const BIOS_TYPES: readonly { readonly chipset: Chipset; readonly firmware: FirmwareKind }[] = [
  { chipset: 'i440fx', firmware: 'bios' },
  { chipset: 'q35', firmware: 'bios' },
  { chipset: 'q35', firmware: 'efi' },
  { chipset: 'q35', firmware: 'efi-secure' },
];
