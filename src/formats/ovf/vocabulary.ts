/**
 * The vocabulary of OVFs: namespaces, numbers of resources, models. oVirt's words are literal; ours are in our own
 * namespace.
 */
import type { Chipset } from '#api/devices/chipset.ts';
import type { DiskBus } from '#api/domain/disk.ts';
import { INTERFACE_MODELS, type InterfaceModel } from '#api/domain/interface.ts';
import type { FirmwareKind } from '#formats/machine.ts';

/** The namespace of the standard; oVirt's ends with a slash. */
export const OVF = 'http://schemas.dmtf.org/ovf/envelope/1';
export const OVF_OVIRT = `${OVF}/`;
export const RASD = 'http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData';
export const VSSD = 'http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_VirtualSystemSettingData';
export const XSI = 'http://www.w3.org/2001/XMLSchema-instance';
/** Our own namespace, for data that oVirt's form cannot represent. */
export const OWN = 'https://selfsame.io/ovf/1';
export const OWN_VERSION = '1';
/** The version of oVirt whose form we write. */
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
  /** A monitor in oVirt's OVFs, another disk controller (SATA) in all others. */
  monitor: 20,
  usb: 23,
  graphicsOva: 24,
  graphics: 26,
  monitorOva: 32_768,
} as const;

/** The default type and device of a ResourceType. */
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

/** Returns undefined for buses that we do not support: SPAPR_VSCSI. */
export function busOfInterface(text: string): DiskBus | undefined {
  return (Object.keys(INTERFACE_OF_BUS) as DiskBus[]).find(
    (bus) => INTERFACE_OF_BUS[bus].toLowerCase() === text.toLowerCase(),
  );
}

/** oVirt's numbers. 0 offers rtl8139 and pv to the guest, of which pv is kept. */
const MODEL_NUMBERS: readonly (InterfaceModel | undefined)[] = [
  'virtio',
  'rtl8139',
  'e1000',
  'virtio',
  undefined,
  undefined,
  'e1000e',
];

/** Returns the name if oVirt has no number for the model. */
export function subTypeOfModel(model: InterfaceModel): number | string {
  return { virtio: 3, rtl8139: 1, e1000: 2, e1000e: 6, pcnet: 'PCNet32', ne2k_pci: 'ne2k_pci' }[model];
}

/** Returns undefined for models that we do not support: VmxNet3, PCI passthrough. */
export function modelOfSubType(text: string): InterfaceModel | undefined {
  if (/^[0-9]$/.test(text)) return MODEL_NUMBERS[Number(text)];
  const word = text.toLowerCase();
  if (word === 'pv' || word === 'virtio' || word === 'virtionet') return 'virtio';
  if (word === 'pcnet32') return 'pcnet';
  return INTERFACE_MODELS.find((model) => model === word);
}

/** The index is the BiosType. An OVF without one is of an i440fx machine. */
export const BIOS_TYPES: readonly { readonly chipset: Chipset; readonly firmware: FirmwareKind }[] = [
  { chipset: 'i440fx', firmware: 'bios' },
  { chipset: 'q35', firmware: 'bios' },
  { chipset: 'q35', firmware: 'efi' },
  { chipset: 'q35', firmware: 'efi-secure' },
];
