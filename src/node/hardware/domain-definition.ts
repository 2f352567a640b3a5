/**
 * The complete description of a guest for the hypervisor, with every path, address and size. define-domain.ts builds it
 * from a VMI, and hypervisor/ runs it. It contains everything that the guest can see of its hardware.
 */
import type { Chassis, Smbios } from '#api/domain/chassis.ts';
import type { DiskBus, DiskCache } from '#api/domain/disk.ts';
import type { InputBus, SoundModel, WatchdogAction } from '#api/domain/hardware.ts';
import type { VideoType } from '#api/domain/video.ts';
import type { InterfaceModel } from '#api/domain/interface.ts';
import type { DeviceAddress, LearnedDevice } from '#api/devices/learned-device.ts';

export interface DomainDefinition {
  /** The uid of the VMI; each start is a new domain. */
  readonly id: string;
  /** `namespace/name`, for messages. */
  readonly name: string;
  /** The canonical name: pc-q35-7.2. */
  readonly machine: string;
  readonly cpu: {
    readonly model: string;
    readonly sockets: number;
    readonly cores: number;
    readonly threads: number;
    /** Features in addition to the model, in QEMU's names: avx2, hv-relaxed. */
    readonly features?: Readonly<Record<string, string | number | boolean>>;
  };
  /** Whole MiB, less 8 KiB under TCG, because QEMU 7.2 corrupts migrating guests otherwise (memory.ts). */
  readonly memoryKib: number;
  readonly firmware: FirmwareDefinition;
  /** The kernel to boot instead of a disk. */
  readonly kernel?: { readonly kernelPath: string; readonly initrdPath?: string; readonly arguments: string };
  /** Absent: UTC with all timers. */
  readonly clock?: ClockDefinition;
  /** The number of I/O threads of its disks. */
  readonly ioThreads?: number;
  /** The niceness of its process, 1 to 19; absent: the default. */
  readonly nice?: number;
  readonly acpi: boolean;
  readonly smm: boolean;
  /** Controllers come before their devices. Ids are unique. */
  readonly devices: readonly Device[];
  /** The directory of the persistent state, used by this domain only. Absent: there is none. */
  readonly state?: { readonly directory: string };
  /** Set if the guest runs in a network namespace of its own. */
  readonly network?: DomainNetwork;
  /** Set for a domain that the host API created, which has no pod. Absent: it belongs to a launcher pod. */
  readonly origin?: 'host-api';
}

/** Settings that DHCP passes to the guest, and its pod, for plugins. */
export interface DomainNetwork {
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string };
  readonly hostname: string;
  readonly searchDomains: readonly string[];
}

export interface FirmwareDefinition {
  readonly uuid: string;
  readonly serial?: string;
  /** Manufacturer and product; `chassis` is the case. Absent: the hypervisor's defaults. */
  readonly smbios?: Smbios;
  readonly chassis?: Chassis;
  readonly loader:
    | { readonly type: 'bios' }
    /** `persistent`: the EFI variables are in the domain's persistent state. */
    | { readonly type: 'efi'; readonly secureBoot: boolean; readonly persistent?: boolean };
}

export interface ClockDefinition {
  /** The offset from UTC, in seconds or by a time zone. */
  readonly offsetSeconds?: number;
  readonly timezone?: string;
  readonly hpet?: false;
  readonly pit?: false;
  readonly pitTickPolicy?: 'delay' | 'discard';
  readonly rtcTickPolicy?: 'delay' | 'catchup';
  readonly rtcTrack?: 'guest' | 'wall';
}

interface DeviceBase {
  /** Our own id, which is also the id in QEMU: disk-<name>, nic-<name>, scsi0, rp3 ... */
  readonly id: string;
  /** In libvirt's form. Absent for devices without an address (tpm, serial). */
  readonly address?: DeviceAddress;
}

/** A PCI Express root port. An empty one is a place for a hotplugged device. */
export interface RootPort extends DeviceBase {
  readonly type: 'root-port';
  /** Starts at 0; the device behind the port is on bus index + 1. */
  readonly index: number;
}

export interface ScsiController extends DeviceBase {
  readonly type: 'scsi-controller';
  readonly queues?: number;
}

export interface DiskSource {
  /** The absolute path of a file or block device. */
  readonly path: string;
  readonly format: 'raw' | 'qcow2';
  /** The file or block device that an overlay is based on, which is only read. */
  readonly base?: string;
}

export interface DiskDevice extends DeviceBase {
  readonly type: 'disk';
  readonly name: string;
  /** `lun`: a SCSI device of the host, with its commands passed through. */
  readonly media: 'disk' | 'cdrom' | 'floppy' | 'lun';
  readonly bus: DiskBus | 'fdc';
  /** Absent: a drive without a medium. */
  readonly source?: DiskSource;
  readonly readonly: boolean;
  readonly serial?: string;
  readonly cache: DiskCache;
  /** Only on virtio: the number of queues; `ioThread` is the thread of the domain that serves the disk. */
  readonly queues?: number;
  readonly ioThread?: number;
  readonly bootOrder?: number;
  /**
   * `report`: the guest sees errors of the disk, except for a full disk, which pauses the guest. `stop`: every error
   * pauses the guest. Absent: the hypervisor's default, which is `report` for QEMU.
   */
  readonly errorPolicy?: 'report' | 'stop';
}

export type InterfaceBackend =
  /** A network inside the hypervisor. Only guests that were started by an earlier version, or by an agent without root. */
  | { readonly type: 'user' }
  /** A bridge of the host. Only guests of the host API, and guests that were started by an earlier version. */
  | { readonly type: 'bridge'; readonly bridge: string }
  /** A tap device in the namespace of the guest. */
  | { readonly type: 'pod'; readonly tap: string; readonly attachment: NetworkAttachment };

/** The connection of an interface to a network. */
export interface NetworkAttachment {
  /** The interface in the namespace of the guest: eth0 for the pod network, net1, net2 ... for others. */
  readonly podInterface: string;
  readonly network:
    | { readonly type: 'default' }
    /** A CNI configuration list, as JSON. */
    | { readonly type: 'cni'; readonly config: string };
  /**
   * `masquerade`: the guest has `guestAddresses`, which are translated to those of the pod. `bridge`: the guest has the
   * addresses of the pod.
   */
  readonly binding: 'masquerade' | 'bridge';
  /** The addresses of the pod with prefix lengths: 10.244.0.5/16. Absent: a plugin chooses them. */
  readonly addresses?: readonly string[];
  /** Only for `masquerade`: 10.0.2.2/24, fd10:0:2::2/120. The gateway is the address before. */
  readonly guestAddresses?: readonly string[];
  /** Only for `masquerade`: the ports that can be reached from outside. Absent: all. */
  readonly ports?: readonly { readonly protocol: 'tcp' | 'udp'; readonly port: number }[];
}

export interface InterfaceDevice extends DeviceBase {
  readonly type: 'interface';
  readonly name: string;
  readonly model: InterfaceModel;
  readonly macAddress: string;
  readonly backend: InterfaceBackend;
  /** Only for virtio interfaces that are not in user mode. */
  readonly queues?: number;
  readonly acpiIndex?: number;
  /** Absent: up. */
  readonly link?: 'down';
  readonly bootOrder?: number;
}

export interface TpmDevice extends DeviceBase {
  readonly type: 'tpm';
  readonly model: 'crb' | 'tis';
  /** True if its content is in the domain's persistent state. */
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

/** The video card. openDisplay (hypervisor.ts) shows its picture. */
export interface VideoDevice extends DeviceBase {
  readonly type: 'video';
  readonly model: VideoType;
}

/** The port of the guest agent. */
export interface AgentChannel extends DeviceBase {
  readonly type: 'agent-channel';
  /** The id of its virtio-serial controller. */
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

/** A USB port into which a client can plug a device of its own machine. */
export interface RedirectionDevice extends DeviceBase {
  readonly type: 'redirection';
}

/** A device from the record that the spec does not ask for, such as the sound card of an imported machine. */
export interface OtherDevice extends DeviceBase {
  readonly type: 'other';
  /** QEMU's name, one of those in other-devices.ts: qemu-xhci, virtio-serial-pci. */
  readonly driver: string;
  /** The recorded row. */
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

/** A device that can be plugged and unplugged while the guest runs. */
export type PluggableDevice = DiskDevice | InterfaceDevice;

/** Reports whether a guest has a video card, from its spec or from an import. */
export function hasDisplay({ devices }: Pick<DomainDefinition, 'devices'>): boolean {
  return devices.some((device) => device.type === 'video' || (device.type === 'other' && device.row.type === 'video'));
}
