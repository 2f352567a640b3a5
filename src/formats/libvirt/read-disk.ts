/** One disk of a domain. Its path is kept; whether there is anything is for others to find out. */
import type { Chipset } from '#api/chipset.ts';
import { DISK_BUSES, DISK_CACHES } from '#api/domain/disk.ts';
import type { UniqueNames } from '#formats/device-names.ts';
import { quoted, type Findings } from '#formats/faults.ts';
import { ownId } from '#formats/libvirt/element-parts.ts';
import type { DescribedDisk, DiskFormat, DiskMedia } from '#formats/machine.ts';
import { isPossibleBus, plainBus } from '#formats/possible.ts';
import { attributeOf, childNamed, type XmlElement } from '#lib/xml.ts';

export interface DomainDisk {
  readonly disk: DescribedDisk;
  readonly element: XmlElement;
  readonly keepsAddress: boolean;
}

const MEDIA: readonly DiskMedia[] = ['disk', 'cdrom', 'floppy', 'lun'];
const PARTS = new Set(['driver', 'source', 'target', 'boot', 'alias', 'address', 'readonly', 'serial', 'backingStore']);

export function readDomainDisk(
  element: XmlElement,
  names: UniqueNames,
  chipset: Chipset | undefined,
  findings: Findings,
): DomainDisk {
  const target = childNamed(element, 'target');
  const dev = attributeOf(target, 'dev') ?? '';
  const name = names.take(ownId(element)?.replace(/^disk-/, '') ?? dev, 'disk');
  const said = attributeOf(element, 'device') ?? 'disk';
  const wanted = MEDIA.find((word) => word === said);
  if (wanted === undefined) findings.fault(`disk ${name}: there is no device ${quoted(said)}`);
  noteParts(element, name, findings);
  const file = sourceOf(element, name, findings);
  const lun = wanted === 'lun' ? lunOf(file) : undefined;
  if (wanted === 'lun' && lun === undefined)
    findings.note(`disk ${name}: ${quoted(file ?? '')} says no guid; the LUN becomes a disk`);
  const media = wanted === 'lun' && lun === undefined ? 'disk' : (wanted ?? 'disk');
  const { bus, isKept } = busOf(attributeOf(target, 'bus') ?? busOfTarget(dev), media, chipset, name, findings);
  const serial = childNamed(element, 'serial')?.text.trim();
  const cache = DISK_CACHES.find((word) => word === attributeOf(childNamed(element, 'driver'), 'cache'));
  return {
    disk: {
      id: `disk-${name}`,
      name,
      media,
      bus,
      ...(file !== undefined && lun === undefined && { file }),
      format: formatOf(element, name, findings),
      readonly: media === 'cdrom' || childNamed(element, 'readonly') !== undefined,
      plugged: true,
      optional: attributeOf(childNamed(element, 'source'), 'startupPolicy') === 'optional',
      ...(serial !== undefined && serial !== '' && { serial }),
      ...(cache !== undefined && { cache }),
      ...(lun !== undefined && { lun }),
    },
    element,
    keepsAddress: isKept,
  };
}

function noteParts(element: XmlElement, name: string, findings: Findings): void {
  const left = element.children.filter((child) => !PARTS.has(child.name)).map((child) => child.name);
  if (left.length > 0) findings.note(`disk ${name}: ${left.join(', ')} is not taken over`);
  if ((childNamed(element, 'backingStore')?.children.length ?? 0) > 0) {
    findings.note(`disk ${name}: its image stands on another one; what is imported must hold both`);
  }
}

/** A path of a file or device; other sources are only told. */
function sourceOf(element: XmlElement, name: string, findings: Findings): string | undefined {
  const source = childNamed(element, 'source');
  const path = attributeOf(source, 'file') ?? attributeOf(source, 'dev');
  if (path !== undefined) {
    findings.note(`disk ${name} is ${quoted(path)} there`);
    return path;
  }
  if (source === undefined || source.attributes.length === 0) return undefined;
  const words = source.attributes.map((attribute) => `${attribute.name}=${attribute.value}`).join(' ');
  findings.note(
    `disk ${name} is ${quoted(words)} there (${attributeOf(element, 'type') ?? ''}), which is not taken over`,
  );
  return undefined;
}

function formatOf(element: XmlElement, name: string, findings: Findings): DiskFormat {
  const type = attributeOf(childNamed(element, 'driver'), 'type') ?? 'raw';
  if (type === 'raw' || type === 'qcow2' || type === 'vmdk') return type;
  findings.fault(`disk ${name}: the format ${quoted(type)} is neither raw, qcow2 nor vmdk`);
  return 'raw';
}

/** As udev and multipath name devices. */
function lunOf(path = ''): DescribedDisk['lun'] {
  const [, uuid] = /^\/dev\/disk\/by-uuid\/([^/]+)$/.exec(path) ?? [];
  if (uuid !== undefined) return { uuid };
  const [, guid] = /^\/dev\/(?:mapper\/|disk\/by-id\/(?:scsi-|wwn-|dm-uuid-mpath-))([A-Za-z0-9._-]+)$/.exec(path) ?? [];
  return guid === undefined ? undefined : { guid };
}

function busOfTarget(dev: string): string {
  if (dev.startsWith('vd')) return 'virtio';
  if (dev.startsWith('hd')) return 'ide';
  return dev.startsWith('fd') ? 'fdc' : 'scsi';
}

function busOf(said: string, media: DiskMedia, chipset: Chipset | undefined, name: string, findings: Findings) {
  if (media === 'floppy') return { bus: 'fdc', isKept: true } as const;
  const bus = DISK_BUSES.find((known) => known === said);
  if (bus !== undefined && isPossibleBus(bus, media, chipset) && (media !== 'lun' || bus === 'scsi'))
    return { bus, isKept: true };
  const instead = media === 'lun' ? 'scsi' : plainBus(chipset);
  findings.note(`disk ${name}: the bus ${quoted(said)} is not there for this machine; it becomes ${instead}`);
  return { bus: instead, isKept: false };
}
