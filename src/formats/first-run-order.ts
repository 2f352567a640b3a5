/**
 * The order in which oVirt's engine tells a host of devices that have no address yet: the disk that boots first, the others
 * by name; interfaces by MAC address. libvirt keeps this order within each class of devices (ADR 19). Pure.
 */
import type { LearnedDevice } from '#api/learned-device.ts';
import type { DescribedDisk, MachineDescription } from '#formats/machine.ts';

type Devices = Pick<MachineDescription, 'disks' | 'nics' | 'rows'>;

const KINDS = ['video', 'cdrom', 'floppy', 'disk', 'interface', 'sound', 'usb', 'balloon'];

/** Returns the devices as they are where any address is known. */
export function inFirstRunOrder(devices: Devices): Devices {
  if (devices.rows.some(({ address }) => address !== undefined)) return devices;
  const disks = [...devices.disks].sort(
    (a, b) => kindOfDisk(a) - kindOfDisk(b) || bootFirst(a, b) || natural(a.name, b.name),
  );
  const nics = [...devices.nics].sort((a, b) => natural(a.mac ?? '~', b.mac ?? '~'));
  const places = new Map([...disks, ...nics].map(({ id }, i) => [id, i]));
  const rows = [...devices.rows].sort(
    (a, b) => kindOfRow(a) - kindOfRow(b) || (places.get(a.id) ?? 0) - (places.get(b.id) ?? 0),
  );
  return { disks, nics, rows };
}

function kindOfDisk({ media }: DescribedDisk): number {
  return rank(media === 'lun' ? 'disk' : media);
}

function kindOfRow({ type, device }: LearnedDevice): number {
  if (type === 'disk') return rank(device === 'lun' ? 'disk' : device);
  return rank(type === 'controller' ? device : type);
}

function rank(kind: string): number {
  const at = KINDS.indexOf(kind);
  return at === -1 ? KINDS.length : at;
}

function bootFirst(a: DescribedDisk, b: DescribedDisk): number {
  return (a.bootOrder ?? Number.MAX_SAFE_INTEGER) - (b.bootOrder ?? Number.MAX_SAFE_INTEGER);
}

function natural(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true });
}
