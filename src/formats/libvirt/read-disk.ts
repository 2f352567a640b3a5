/** Reads one disk of a domain. The path of its file is kept and not checked. */
import type { Chipset } from '#api/devices/chipset.ts';
import { DISK_BUSES, DISK_CACHES } from '#api/domain/disk.ts';
import type { UniqueNames } from '#formats/device-names.ts';
import type { Findings } from '#formats/findings.ts';
import { readOwnId } from '#formats/libvirt/element-parts.ts';
import type { DescribedDisk, DiskFormat, DiskMedia } from '#formats/machine.ts';
import { isSupportedBus, fallbackBus } from '#formats/supported-hardware.ts';
import { attributeOf, childNamed, type XmlElement } from '#lib/xml/xml.ts';
import { quoteText } from '#lib/text/quote-text.ts';

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
  const name = names.take(readOwnId(element)?.replace(/^disk-/, '') ?? dev, 'disk');
  const device = attributeOf(element, 'device') ?? 'disk';
  const sourceMedia = MEDIA.find((word) => word === device);
  if (sourceMedia === undefined) findings.addError(`disk ${name}: there is no device ${quoteText(device)}`);
  noteIgnoredParts(element, name, findings);
  const file = readSource(element, name, findings);
  const lun = sourceMedia === 'lun' ? parseLun(file) : undefined;
  if (sourceMedia === 'lun' && lun === undefined)
    findings.addNote(`disk ${name}: ${quoteText(file ?? '')} has no guid; the LUN is imported as a disk`);
  const media = sourceMedia === 'lun' && lun === undefined ? 'disk' : (sourceMedia ?? 'disk');
  const { bus, isKept } = chooseBus(attributeOf(target, 'bus') ?? busOfTarget(dev), media, chipset, name, findings);
  const serial = childNamed(element, 'serial')?.text.trim();
  const cache = DISK_CACHES.find((word) => word === attributeOf(childNamed(element, 'driver'), 'cache'));
  return {
    disk: {
      id: `disk-${name}`,
      name,
      media,
      bus,
      ...(file !== undefined && lun === undefined && { file }),
      format: readFormat(element, name, findings),
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

function noteIgnoredParts(element: XmlElement, name: string, findings: Findings): void {
  const ignored = element.children.filter((child) => !PARTS.has(child.name)).map((child) => child.name);
  if (ignored.length > 0) findings.addNote(`disk ${name}: ${ignored.join(', ')} is not imported`);
  if ((childNamed(element, 'backingStore')?.children.length ?? 0) > 0) {
    findings.addNote(`disk ${name}: its image has a backing image; the imported data must contain both`);
  }
}

/** Returns the path of a file or device. Other sources are only noted. */
function readSource(element: XmlElement, name: string, findings: Findings): string | undefined {
  const source = childNamed(element, 'source');
  const path = attributeOf(source, 'file') ?? attributeOf(source, 'dev');
  if (path !== undefined) {
    findings.addNote(`disk ${name} is ${quoteText(path)} on the original host`);
    return path;
  }
  if (source === undefined || source.attributes.length === 0) return undefined;
  const words = source.attributes.map((attribute) => `${attribute.name}=${attribute.value}`).join(' ');
  findings.addNote(
    `disk ${name} is ${quoteText(words)} (${attributeOf(element, 'type') ?? ''}) on the original host, which is not imported`,
  );
  return undefined;
}

function readFormat(element: XmlElement, name: string, findings: Findings): DiskFormat {
  const type = attributeOf(childNamed(element, 'driver'), 'type') ?? 'raw';
  if (type === 'raw' || type === 'qcow2' || type === 'vmdk') return type;
  findings.addError(`disk ${name}: the format ${quoteText(type)} is neither raw, qcow2 nor vmdk`);
  return 'raw';
}

/** Parses device names of udev and multipath. */
function parseLun(path = ''): DescribedDisk['lun'] {
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

function chooseBus(
  sourceBus: string,
  media: DiskMedia,
  chipset: Chipset | undefined,
  name: string,
  findings: Findings,
) {
  if (media === 'floppy') return { bus: 'fdc', isKept: true } as const;
  const bus = DISK_BUSES.find((known) => known === sourceBus);
  if (bus !== undefined && isSupportedBus(bus, media, chipset) && (media !== 'lun' || bus === 'scsi'))
    return { bus, isKept: true };
  const replacement = media === 'lun' ? 'scsi' : fallbackBus(chipset);
  findings.addNote(
    `disk ${name}: the bus ${quoteText(sourceBus)} is not supported on this machine; it is replaced with ${replacement}`,
  );
  return { bus: replacement, isKept: false };
}
