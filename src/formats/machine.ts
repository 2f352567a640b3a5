/**
 * A machine as the file formats of others describe it, and as ours do: the one shape between readers, writers and the
 * objects of the API. Names are already such that Kubernetes takes them; ids follow from them. Pure.
 */
import type { Chipset } from '#api/chipset.ts';
import type { DiskBus, DiskCache } from '#api/domain/disk.ts';
import type { InterfaceModel } from '#api/domain/interface.ts';
import type { LearnedDevice } from '#api/learned-device.ts';

export type DiskMedia = 'disk' | 'cdrom' | 'floppy' | 'lun';
export type FirmwareKind = 'bios' | 'efi' | 'efi-secure';
/** `vmdk` is only ever read: whoever takes its data converts it. */
export type DiskFormat = 'raw' | 'qcow2' | 'vmdk';

export interface DescribedDisk {
  /** `disk-<name>`. */
  readonly id: string;
  readonly name: string;
  readonly media: DiskMedia;
  readonly bus: DiskBus | 'fdc';
  /** Where its data is: in OVFs a path relative to them, in domains of libvirt an absolute one. Absent: no medium, or empty. */
  readonly file?: string;
  /** What the guest sees; absent where the file does not say. */
  readonly sizeBytes?: number;
  readonly format: DiskFormat;
  readonly bootOrder?: number;
  readonly readonly: boolean;
  readonly plugged: boolean;
  readonly optional: boolean;
  readonly serial?: string;
  readonly cache?: DiskCache;
  readonly hotpluggable?: boolean;
  /** A device of the storage, not a file: one of the two. Media lun always has it, media disk may. */
  readonly lun?: { readonly guid?: string; readonly uuid?: string };
}

export interface DescribedNic {
  /** `nic-<name>`. */
  readonly id: string;
  readonly name: string;
  readonly model: InterfaceModel;
  /** In lower case, with colons. */
  readonly mac?: string;
  /** The network of its origin: `pod`, the name of a bridge, or what another manager calls it. */
  readonly network?: string;
  readonly bootOrder?: number;
  readonly plugged: boolean;
}

/** What of the machine outlives its restarts besides its disks. */
export interface DescribedState {
  readonly tpm: boolean;
  readonly efi: boolean;
  /** The archive of it (node/volumes/state-archive.ts), a path relative to the OVF. Absent: both begin anew. */
  readonly file?: string;
  readonly sizeBytes?: number;
}

export interface MachineSource {
  readonly format: 'ovf' | 'libvirt' | 'vm';
  readonly product?: string;
  readonly version?: string;
}

export interface MachineDescription {
  readonly name: string;
  readonly uuid?: string;
  readonly serial?: string;
  /** As the file names it: not necessarily one that we can run. */
  readonly machineType?: string;
  readonly chipset?: Chipset;
  readonly cpu: { readonly sockets: number; readonly cores: number; readonly threads: number; readonly model?: string };
  readonly memoryMib: number;
  readonly firmware: FirmwareKind;
  /** Whether there is a row of type tpm. */
  readonly tpm: boolean;
  /** Absent where neither is kept. */
  readonly state?: DescribedState;
  readonly disks: readonly DescribedDisk[];
  readonly nics: readonly DescribedNic[];
  /**
   * The boot orders only follow from the order of the disks, because the VM names none: an import names none, either.
   * Only ever there for machines of ours.
   */
  readonly bootOrderIsImplied?: true;
  /** All devices, disks and interfaces included, with the addresses that are known. */
  readonly rows: readonly LearnedDevice[];
  readonly source: MachineSource;
  /** What the file says and we do not have: nothing is left out in silence. */
  readonly notes: readonly string[];
}

/** `OVF of oVirt 4.1`, for the history of a machine. */
export function sourceText({ format, product, version }: MachineSource): string {
  const what = { ovf: 'OVF', libvirt: 'libvirt domain', vm: 'VM' }[format];
  return [what, product === undefined ? undefined : `of ${product}`, version].filter(Boolean).join(' ');
}
