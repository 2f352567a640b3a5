/**
 * Sorts devices without addresses as oVirt's engine sends them to a host: the first boot disk, the other disks by name,
 * interfaces by MAC address. libvirt keeps this order within each class of devices (ADR 19). Pure.
 */
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import type { DescribedDisk, MachineDescription } from '#formats/machine.ts';

type Devices = Pick<MachineDescription, 'disks' | 'nics' | 'rows'>;

const KINDS = ['video', 'cdrom', 'floppy', 'disk', 'interface', 'sound', 'usb', 'balloon'];

/** Returns the devices unchanged if any of them has an address. */
export function sortForFirstRun(devices: Devices): Devices {
  if (devices.rows.some(({ address }) => address !== undefined)) return devices;
  const disks = [...devices.disks].sort(
    (a, b) => rankOfDisk(a) - rankOfDisk(b) || compareBootOrder(a, b) || compareNaturally(a.name, b.name),
  );
  const nics = [...devices.nics].sort((a, b) => compareNaturally(a.mac ?? '~', b.mac ?? '~'));
  const places = new Map([...disks, ...nics].map(({ id }, i) => [id, i]));
  const rows = [...devices.rows].sort(
    (a, b) => rankOfRow(a) - rankOfRow(b) || (places.get(a.id) ?? 0) - (places.get(b.id) ?? 0),
  );
  return { disks, nics, rows };
}

function rankOfDisk({ media }: DescribedDisk): number {
  return rank(media === 'lun' ? 'disk' : media);
}

function rankOfRow({ type, device }: LearnedDevice): number {
  if (type === 'disk') return rank(device === 'lun' ? 'disk' : device);
  return rank(type === 'controller' ? device : type);
}

function rank(kind: string): number {
  const at = KINDS.indexOf(kind);
  return at === -1 ? KINDS.length : at;
}

function compareBootOrder(a: DescribedDisk, b: DescribedDisk): number {
  return (a.bootOrder ?? Number.MAX_SAFE_INTEGER) - (b.bootOrder ?? Number.MAX_SAFE_INTEGER);
}

function compareNaturally(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true });
}
