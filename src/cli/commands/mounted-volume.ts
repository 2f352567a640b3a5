/** Finds the file systems that a guest has mounted from one of its volumes, from the answer of its guest agent. */
import type { GuestFileSystem } from '#api/guest-info.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { verbPath } from '#cli/connection/verb-path.ts';
import { findObject } from '#cli/connection/vm-objects.ts';
import { ApiError } from '#kube/api-error.ts';
import { isTrue } from '#kube/conditions.ts';
import { isRecord } from '#kube/meta.ts';

/** A virtio disk shows this many characters of its serial number to the guest. */
const VIRTIO_SERIAL_LENGTH = 20;
/** The text before the serial number of a SCSI or SATA disk of QEMU, as udev in the guest reports it. */
const UDEV_PREFIX = /^0?QEMU_(?:QEMU_)?HARDDISK_/;

/** Reports a warning if the guest has mounted the volume. Without a guest agent, nothing is known. Throws CommandError. */
export async function warnIfMounted(
  api: Pick<ApiConnection, 'get' | 'namespace'>,
  vm: string,
  volume: string,
  report: (line: string) => void,
): Promise<void> {
  try {
    const vmi = await findObject(api, VIRTUAL_MACHINE_INSTANCES, vm);
    if (vmi === undefined || !isTrue(vmi.status?.conditions, 'AgentConnected')) return;
    const answer = await api.get(verbPath('virtualmachineinstances', api.namespace, vm, 'filesystemlist'));
    const items = isRecord(answer) && Array.isArray(answer['items']) ? (answer['items'] as GuestFileSystem[]) : [];
    const mounted = findMounted(vmi, volume, items);
    if (mounted.length > 0) report(mountedText(vm, volume, mounted));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    report(`Warning: cannot check whether the guest of VM ${vm} has volume ${volume} mounted: ${error.message}`);
  }
}

/** Returns the file systems on the disk of a volume. A disk is found by its serial number. */
export function findMounted(
  { spec }: Pick<VirtualMachineInstance, 'spec'>,
  volume: string,
  fileSystems: readonly GuestFileSystem[],
): GuestFileSystem[] {
  const serial = spec.domain.devices?.disks?.find(({ name }) => name === volume)?.serial;
  if (!serial) return [];
  const matches = (reported: string, busType: string) =>
    busType === 'virtio'
      ? reported === serial.slice(0, VIRTIO_SERIAL_LENGTH)
      : reported.replace(UDEV_PREFIX, '') === serial;
  return fileSystems.filter(({ disk = [] }) =>
    disk.some(({ serial: reported, busType }) => reported !== undefined && matches(reported, busType)),
  );
}

export function mountedText(vm: string, volume: string, mounted: readonly GuestFileSystem[]): string {
  const places = mounted.map(({ mountPoint, diskName, fileSystemType }) => {
    return `${mountPoint} (${[diskName, fileSystemType].filter(Boolean).join(', ')})`;
  });
  return (
    `Warning: the guest of VM ${vm} has volume ${volume} mounted at ${places.join(' and ')}: ` +
    'data that it has not written yet may be lost; unmount volumes in the guest first (--dry-run only checks)'
  );
}
