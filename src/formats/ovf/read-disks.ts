/** Converts disk Items: finds their data in the disk section or among the files, and chooses a bus that we support. */
import type { Chipset } from '#api/devices/chipset.ts';
import { DISK_BUSES, DISK_CACHES } from '#api/domain/disk.ts';
import { UniqueNames } from '#formats/device-names.ts';
import type { Findings } from '#formats/findings.ts';
import type { DescribedDisk, DiskMedia } from '#formats/machine.ts';
import { NO_FLOPPY, isSupportedBus, fallbackBus } from '#formats/supported-hardware.ts';
import type { Envelope } from '#formats/ovf/envelope.ts';
import type { OvfItem } from '#formats/ovf/read-item.ts';
import type { OvfDisk, OvfFile, OvfStorage } from '#formats/ovf/read-storage.ts';
import { RESOURCE, busOfInterface } from '#formats/ovf/vocabulary.ts';
import { quoteText } from '#lib/text/quote-text.ts';

export interface ReadDisk {
  /** The disk without its boot order. */
  readonly disk: DescribedDisk;
  /** False if the bus is replaced, because the address belongs to the original bus. */
  readonly keepsAddress: boolean;
  /** Absent for a LUN that only the disk section has. */
  readonly item?: OvfItem;
  /** True if the disk is marked as boot disk. */
  readonly isBootDisk: boolean;
}

const MEDIA: readonly DiskMedia[] = ['disk', 'cdrom', 'floppy', 'lun'];
const MAX_SATA = 6;

export function readDisks(
  envelope: Envelope,
  items: readonly OvfItem[],
  all: readonly OvfItem[],
  storage: OvfStorage,
  chipset: Chipset | undefined,
  findings: Findings,
): ReadDisk[] {
  const parents = new Map(all.map((item) => [item.instanceId, item]));
  const byId = diskFinder(storage.disks);
  const used = new Set<OvfDisk>();
  const names = new UniqueNames();
  let sata = 0;
  const possible = items.filter((item) => {
    const isLeft = readMedia(item, undefined) === 'floppy' && chipset !== 'i440fx' && !item.own.has('media');
    if (isLeft) findings.addNote(`${quoteText(item.label)} is left out: ${NO_FLOPPY}`);
    return !isLeft;
  });
  const read = possible.map((item): ReadDisk => {
    const { own } = item;
    const data = byId(item);
    const media = readMedia(item, data);
    if (data !== undefined && used.has(data))
      findings.addError(`two devices have the disk ${quoteText(data.alias ?? data.diskId)}`);
    if (data !== undefined) used.add(data);
    const isData = media === 'disk' || media === 'lun';
    if (isData && data === undefined)
      findings.addError(`${quoteText(item.label)}: its disk is missing in the disk section`);
    const file = data?.file ?? findFile(item, storage.files, findings);
    const name = own.get('name') ?? names.take(isData ? (data?.alias ?? item.label) : media, media);
    const bus = chooseBus(item, data, media, chipset, parents, envelope.product, findings);
    const isFull = bus.bus === 'sata' && bus.isReplaced && ++sata > MAX_SATA;
    return {
      disk: {
        id: `disk-${name}`,
        name,
        media,
        bus: isFull ? 'scsi' : bus.bus,
        ...readContent(item, data, file, media),
        readonly: item.readonly || data?.readonly === true || media === 'cdrom',
        plugged: item.plugged,
        optional: own.get('optional') === 'true',
        ...readOwnDetails(own),
        ...readLun(item, data, media),
      },
      keepsAddress: !bus.isReplaced,
      item,
      isBootDisk: data?.boot === true,
    };
  });
  return [
    ...read,
    ...storage.disks.filter((disk) => !used.has(disk)).flatMap((disk) => readLunWithoutItem(disk, names, findings)),
  ];
}

/**
 * Returns a function that finds the disk of an Item by its reference (`ovf:/disk/ID`, oVirt's `diskId/imageId`) or its
 * own id.
 */
function diskFinder(disks: readonly OvfDisk[]): (item: OvfItem) => OvfDisk | undefined {
  const byId = new Map(disks.map((disk) => [disk.diskId, disk]));
  const byFile = new Map(disks.flatMap((disk) => (disk.fileRef === undefined ? [] : [[disk.fileRef, disk] as const])));
  return ({ texts, instanceId }) => {
    const reference = texts.get('HostResource');
    if (reference === undefined) return byId.get(instanceId);
    const parts = reference.replace(/^(?:ovf:)?\/disk\//, '').split('/');
    return (
      byFile.get(reference) ??
      parts.map((part) => byId.get(part)).find((disk) => disk !== undefined) ??
      byId.get(instanceId)
    );
  };
}

function readMedia({ own, texts, resourceType }: OvfItem, data: OvfDisk | undefined): DiskMedia {
  const sourceMedia = MEDIA.find((word) => word === (own.get('media') ?? texts.get('Device')));
  if (data?.lunId !== undefined && (sourceMedia ?? 'disk') === 'disk' && !own.has('media')) return 'lun';
  if (sourceMedia !== undefined) return sourceMedia;
  if (resourceType === RESOURCE.floppy) return 'floppy';
  return resourceType === RESOURCE.disk ? 'disk' : 'cdrom';
}

function findFile({ texts, label }: OvfItem, files: readonly OvfFile[], findings: Findings): OvfFile | undefined {
  const [, id] = /^(?:ovf:)?\/file\/(.+)$/.exec(texts.get('HostResource') ?? '') ?? [];
  if (id === undefined) return undefined;
  const file = files.find((known) => known.id === id);
  if (file === undefined) findings.addError(`${quoteText(label)} is in the file ${quoteText(id)}, which is missing`);
  return file;
}

function readContent({ own }: OvfItem, data: OvfDisk | undefined, file: OvfFile | undefined, media: DiskMedia) {
  const sizeBytes =
    data?.sizeBytes ?? (media === 'disk' ? undefined : (parseNumber(own.get('size')) ?? file?.sizeBytes));
  const format = own.get('format') === 'qcow2' ? 'qcow2' : (data?.format ?? 'raw');
  return {
    ...(file !== undefined && { file: file.href }),
    ...(sizeBytes !== undefined && { sizeBytes }),
    format,
  } as const;
}

function parseNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^[0-9]{1,16}$/.test(text) ? Number(text) : undefined;
}

function readOwnDetails(own: ReadonlyMap<string, string>) {
  const serial = own.get('serial');
  const cache = DISK_CACHES.find((word) => word === own.get('cache'));
  const hotpluggable = own.get('hotpluggable');
  return {
    ...(serial !== undefined && { serial }),
    ...(cache !== undefined && { cache }),
    ...(hotpluggable !== undefined && { hotpluggable: hotpluggable === 'true' }),
  };
}

function readLun({ own }: OvfItem, data: OvfDisk | undefined, media: DiskMedia): Pick<DescribedDisk, 'lun'> {
  const [guid, uuid] = [own.get('lun-guid') ?? data?.lunId, own.get('lun-uuid')];
  if (uuid !== undefined) return { lun: { uuid } };
  return media === 'lun' || own.has('lun-guid') ? { lun: { guid } } : {};
}

interface ChosenBus {
  readonly bus: DescribedDisk['bus'];
  /** True if the bus differs from the one in the file. */
  readonly isReplaced: boolean;
}

function chooseBus(
  item: OvfItem,
  data: OvfDisk | undefined,
  media: DiskMedia,
  chipset: Chipset | undefined,
  parents: ReadonlyMap<string, OvfItem>,
  product: Envelope['product'],
  findings: Findings,
): ChosenBus {
  if (media === 'floppy') return { bus: 'fdc', isReplaced: false };
  const exact = DISK_BUSES.find((bus) => bus === item.own.get('bus'));
  if (exact !== undefined) return { bus: exact, isReplaced: false };
  if (media === 'lun')
    return { bus: 'scsi', isReplaced: data?.busText !== undefined && busOfInterface(data.busText) !== 'scsi' };
  const plain = fallbackBus(chipset);
  const sourceBus = data?.busText ?? (product === undefined ? readController(item, parents) : plain);
  const bus = busOfInterface(sourceBus);
  if (bus !== undefined && isSupportedBus(bus, media, chipset)) return { bus, isReplaced: false };
  findings.addNote(
    `${quoteText(item.label)}: the bus ${quoteText(sourceBus)} is not supported on this machine; it is replaced with ${plain}`,
  );
  return { bus: plain, isReplaced: true };
}

/** Returns the kind of the disk's controller, in oVirt's words if we support it. */
function readController({ texts }: OvfItem, parents: ReadonlyMap<string, OvfItem>): string {
  const parent = parents.get(texts.get('Parent') ?? '');
  const model = parent?.texts.get('ResourceSubType') ?? '';
  if (parent?.resourceType === RESOURCE.ide) return 'IDE';
  if (parent?.resourceType === RESOURCE.scsi) return /virtio/i.test(model) ? 'VirtIO_SCSI' : model || 'SCSI';
  return 'SATA';
}

/** Reads a LUN that oVirt names only in the disk section. Any other disk without a device is an error. */
function readLunWithoutItem(data: OvfDisk, names: UniqueNames, findings: Findings): ReadDisk[] {
  const { alias, diskId, lunId, format, readonly, plugged, boot } = data;
  if (lunId === undefined) {
    findings.addError(`the disk ${quoteText(alias ?? diskId)} belongs to no device`);
    return [];
  }
  const name = names.take(alias ?? 'lun', 'lun');
  const disk = {
    id: `disk-${name}`,
    name,
    media: 'lun',
    bus: 'scsi',
    format,
    readonly,
    plugged,
    optional: false,
  } as const;
  return [{ disk: { ...disk, lun: { guid: lunId } }, keepsAddress: true, isBootDisk: boot }];
}
