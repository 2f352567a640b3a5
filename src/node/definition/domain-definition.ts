/**
 * A guest as a hypervisor is to run it: complete, with every path, address and size decided. Made by define-domain.ts
 * from a VMI, carried out by hypervisor/. What a guest can see of itself is all in here.
 */
import type { Chassis, Smbios } from '#api/domain/chassis.ts';
import type { DiskBus, DiskCache } from '#api/domain/disk.ts';
import type { InputBus, SoundModel, WatchdogAction } from '#api/domain/hardware.ts';
import type { VideoType } from '#api/domain/video.ts';
import type { InterfaceModel } from '#api/domain/interface.ts';
import type { DeviceAddress, LearnedDevice } from '#api/learned-device.ts';

export interface DomainDefinition {
  /** The uid of the VMI: one start, one domain. */
  readonly id: string;
  /** `namespace/name`, for people. */
  readonly name: string;
  /** Canonical: pc-q35-7.2. */
  readonly machine: string;
  readonly cpu: {
    readonly model: string;
    readonly sockets: number;
    readonly cores: number;
    readonly threads: number;
    /** Beyond the model, as QEMU names them: avx2, hv-relaxed. */
    readonly features?: Readonly<Record<string, string | number | boolean>>;
  };
  /** What the guest really gets: whole MiB, less 8 KiB under TCG (facts: QEMU 7.2 corrupts migrating guests otherwise). */
  readonly memoryKib: number;
  readonly firmware: FirmwareDefinition;
  /** Boots this kernel instead of a disk. */
  readonly kernel?: { readonly kernelPath: string; readonly initrdPath?: string; readonly arguments: string };
  /** Absent: UTC, with all timers. */
  readonly clock?: ClockDefinition;
  /** How many threads of their own its disks share. */
  readonly ioThreads?: number;
  /** The niceness of its process, from 1 to 19; absent: that of all others. */
  readonly nice?: number;
  readonly acpi: boolean;
  readonly smm: boolean;
  /** Controllers before what stands on them. Ids are unique. */
  readonly devices: readonly Device[];
  /** Where what outlives the guest is kept: a directory of files, this domain's alone. Absent: nothing does. */
  readonly state?: { readonly directory: string };
  /** Who asked for it: no pod stands behind what came by the host API. Absent: a launcher pod. */
  readonly origin?: 'host-api';
}

export interface FirmwareDefinition {
  readonly uuid: string;
  readonly serial?: string;
  /** What it says of its maker, and of the case that it is in; absent: what the hypervisor says. */
  readonly smbios?: Smbios;
  readonly chassis?: Chassis;
  readonly loader:
    | { readonly type: 'bios' }
    /** `persistent`: its variables are in the domain's state. */
    | { readonly type: 'efi'; readonly secureBoot: boolean; readonly persistent?: boolean };
}

export interface ClockDefinition {
  /** Against UTC; in seconds, or as the time of a zone. */
  readonly offsetSeconds?: number;
  readonly timezone?: string;
  readonly hpet?: false;
  readonly pit?: false;
  readonly pitTickPolicy?: 'delay' | 'discard';
  readonly rtcTickPolicy?: 'delay' | 'catchup';
  readonly rtcTrack?: 'guest' | 'wall';
}

interface DeviceBase {
  /** Our own id and the id in QEMU: disk-<name>, nic-<name>, scsi0, rp3 ... */
  readonly id: string;
  /** Absent for what has no address (tpm, serial). In libvirt's shape. */
  readonly address?: DeviceAddress;
}

/** An empty port is a place for a device that comes later. */
export interface RootPort extends DeviceBase {
  readonly type: 'root-port';
  /** From 0 on; the guest sees what is behind it on bus index + 1. */
  readonly index: number;
}

export interface ScsiController extends DeviceBase {
  readonly type: 'scsi-controller';
  readonly queues?: number;
}

export interface DiskSource {
  /** Absolute; a file or a block device. */
  readonly path: string;
  readonly format: 'raw' | 'qcow2';
}

export interface DiskDevice extends DeviceBase {
  readonly type: 'disk';
  readonly name: string;
  /** `lun`: the SCSI device of the host itself, its commands passed through. */
  readonly media: 'disk' | 'cdrom' | 'floppy' | 'lun';
  readonly bus: DiskBus | 'fdc';
  /** Absent: a drive without a medium. */
  readonly source?: DiskSource;
  readonly readonly: boolean;
  readonly serial?: string;
  readonly cache: DiskCache;
  /** Only on virtio: how many, and which one of the threads of the domain serves it. */
  readonly queues?: number;
  readonly ioThread?: number;
  readonly bootOrder?: number;
  /**
   * An error of the disk reaches the guest (`report`, but for a full disk, which stops it), or stops the guest (`stop`).
   * Absent: as the hypervisor does by itself, which is `report` with QEMU.
   */
  readonly errorPolicy?: 'report' | 'stop';
}

export type InterfaceBackend = { readonly type: 'user' } | { readonly type: 'bridge'; readonly bridge: string };

export interface InterfaceDevice extends DeviceBase {
  readonly type: 'interface';
  readonly name: string;
  readonly model: InterfaceModel;
  readonly macAddress: string;
  readonly backend: InterfaceBackend;
  /** Only of virtio interfaces on a bridge. */
  readonly queues?: number;
  readonly acpiIndex?: number;
  /** Absent: up. */
  readonly link?: 'down';
  readonly bootOrder?: number;
}

export interface TpmDevice extends DeviceBase {
  readonly type: 'tpm';
  readonly model: 'crb' | 'tis';
  /** Its content is in the domain's state. */
  readonly persistent?: boolean;
}

export interface RngDevice extends DeviceBase {
  readonly type: 'rng';
}

export interface BalloonDevice extends DeviceBase {
  readonly type: 'balloon';
}

export interface SerialDevice extends DeviceBase {
  readonly type: 'serial';
}

/** What a picture is drawn on. It is shown to whoever opens the display (hypervisor.ts). */
export interface VideoDevice extends DeviceBase {
  readonly type: 'video';
  readonly model: VideoType;
}

/** The port of the guest agent. */
export interface AgentChannel extends DeviceBase {
  readonly type: 'agent-channel';
  /** The virtio-serial controller that it is on. */
  readonly controller: string;
}

export interface UsbController extends DeviceBase {
  readonly type: 'usb-controller';
}

export interface InputDevice extends DeviceBase {
  readonly type: 'input';
  readonly name: string;
  readonly bus: InputBus;
}

export interface SoundDevice extends DeviceBase {
  readonly type: 'sound';
  readonly name: string;
  readonly model: SoundModel;
}

export interface WatchdogDevice extends DeviceBase {
  readonly type: 'watchdog';
  readonly name: string;
  readonly action: WatchdogAction;
}

/** A USB port into which a device of whoever looks at the VM can be plugged. */
export interface RedirectionDevice extends DeviceBase {
  readonly type: 'redirection';
}

/** Hardware that no spec asks for and that the record passes back: a USB controller, a sound card of an imported machine. */
export interface OtherDevice extends DeviceBase {
  readonly type: 'other';
  /** QEMU's name of it, of a list that we know: qemu-xhci, virtio-serial-pci. */
  readonly driver: string;
  /** As the record has it. */
  readonly row: Pick<LearnedDevice, 'type' | 'device' | 'managed' | 'specParams'>;
}

export type Device =
  | RootPort
  | ScsiController
  | DiskDevice
  | InterfaceDevice
  | TpmDevice
  | RngDevice
  | BalloonDevice
  | SerialDevice
  | VideoDevice
  | AgentChannel
  | UsbController
  | InputDevice
  | SoundDevice
  | WatchdogDevice
  | RedirectionDevice
  | OtherDevice;

/** What can come and go while the guest runs. */
export type PluggableDevice = DiskDevice | InterfaceDevice;

export type DeviceOf<T extends Device['type']> = Extract<Device, { type: T }>;
