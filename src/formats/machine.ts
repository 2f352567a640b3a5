/**
 * The description of a machine that all readers, writers and API objects of this folder share. Names are valid for
 * Kubernetes, and ids are derived from them. Pure.
 */
import type { Chipset } from '#api/devices/chipset.ts';
import type { DiskBus, DiskCache } from '#api/domain/disk.ts';
import type { InterfaceModel } from '#api/domain/interface.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';

export type DiskMedia = 'disk' | 'cdrom' | 'floppy' | 'lun';
export type FirmwareKind = 'bios' | 'efi' | 'efi-secure';
/** `vmdk` is only read; its data is converted on import. */
export type DiskFormat = 'raw' | 'qcow2' | 'vmdk';

/** A part of the data of cloud-init. At least one field is set. */
export interface CloudInitPart {
  /** The data in base64. Absent if it is in a Secret that the description does not contain. */
  readonly base64?: string;
  /** The name of the Secret that has the data; absent if the VM itself has it. */
  readonly secret?: string;
}

/** The content of a disk from which cloud-init reads its configuration (NoCloud). */
export interface DescribedCloudInit {
  readonly userData?: CloudInitPart;
  readonly networkData?: CloudInitPart;
}

export interface DescribedDisk {
  /** `disk-<name>`. */
  readonly id: string;
  readonly name: string;
  readonly media: DiskMedia;
  readonly bus: DiskBus | 'fdc';
  /** The path of its data: relative to an OVF, absolute in a libvirt domain. Absent: no medium, or an empty one. */
  readonly file?: string;
  /** The size that the guest sees; absent if the file does not have it. */
  readonly sizeBytes?: number;
  readonly format: DiskFormat;
  readonly bootOrder?: number;
  readonly readonly: boolean;
  readonly plugged: boolean;
  readonly optional: boolean;
  readonly serial?: string;
  readonly cache?: DiskCache;
  readonly hotpluggable?: boolean;
  /** A storage device instead of a file, by guid or uuid. Always set for the media lun, possible for disk. */
  readonly lun?: { readonly guid?: string; readonly uuid?: string };
  /** Set if the content is created from this data at each start; there is no file then. */
  readonly cloudInit?: DescribedCloudInit;
}

export interface DescribedNic {
  /** `nic-<name>`. */
  readonly id: string;
  readonly name: string;
  readonly model: InterfaceModel;
  /** In lower case with colons. */
  readonly mac?: string;
  /** The original network: `pod`, the name of a NetworkAttachmentDefinition, or the name of a bridge or network in another manager. */
  readonly network?: string;
  readonly bootOrder?: number;
  readonly plugged: boolean;
}

/** The persistent state of the machine. */
export interface DescribedState {
  readonly tpm: boolean;
  readonly efi: boolean;
  /** The path of its archive (node/volumes/local/state/state-archive.ts), relative to the OVF. Absent: the state starts empty. */
  readonly file?: string;
  readonly sizeBytes?: number;
}

interface MachineSource {
  readonly format: 'ovf' | 'libvirt' | 'vm';
  readonly product?: string;
  readonly version?: string;
}

export interface MachineDescription {
  readonly name: string;
  readonly uuid?: string;
  readonly serial?: string;
  /** The name in the file, which we may not support. */
  readonly machineType?: string;
  readonly chipset?: Chipset;
  readonly cpu: { readonly sockets: number; readonly cores: number; readonly threads: number; readonly model?: string };
  readonly memoryMib: number;
  readonly firmware: FirmwareKind;
  /** True if there is a row of type tpm. */
  readonly tpm: boolean;
  /** Absent if there is no persistent state. */
  readonly state?: DescribedState;
  readonly disks: readonly DescribedDisk[];
  readonly nics: readonly DescribedNic[];
  /** The host name that cloud-init and DHCP announce; absent if it is the name of the machine. */
  readonly hostname?: string;
  /** The labels of the VM. */
  readonly labels?: Readonly<Record<string, string>>;
  /** The labels of its instances. */
  readonly templateLabels?: Readonly<Record<string, string>>;
  /**
   * Set if the VM has no boot orders, so that they only follow from the order of the disks; an import then adds none
   * either. Only for our own machines.
   */
  readonly bootOrderIsImplied?: true;
  /** All devices, including disks and interfaces, with their known addresses. */
  readonly rows: readonly LearnedDevice[];
  readonly source: MachineSource;
  /** Sentences about parts of the file that we do not support; nothing is ignored silently. */
  readonly notes: readonly string[];
}

/** Returns a text such as `OVF of oVirt 4.1`, for the history of a machine. */
export function sourceText({ format, product, version }: MachineSource): string {
  const what = { ovf: 'OVF', libvirt: 'libvirt domain', vm: 'VM' }[format];
  return [what, product === undefined ? undefined : `of ${product}`, version].filter(Boolean).join(' ');
}
