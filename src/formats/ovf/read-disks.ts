/** Disk Items with their data: which disk of the disk section, or which file, and on which bus it can be here. */
import type { Chipset } from '#api/chipset.ts';
import { DISK_BUSES, DISK_CACHES } from '#api/domain/disk.ts';
import { UniqueNames } from '#formats/device-names.ts';
import { quoted, type Findings } from '#formats/faults.ts';
import type { DescribedDisk, DiskMedia } from '#formats/machine.ts';
import { NO_FLOPPY, isPossibleBus, plainBus } from '#formats/possible.ts';
import type { Envelope } from '#formats/ovf/envelope.ts';
import type { OvfItem } from '#formats/ovf/read-item.ts';
import type { OvfDisk, OvfFile, OvfStorage } from '#formats/ovf/read-storage.ts';
import { RESOURCE, busOfInterface } from '#formats/ovf/vocabulary.ts';

export interface ReadDisk {
  /** Without its boot order. */
  readonly disk: DescribedDisk;
  /** An address of another bus would be that of another place. */
  readonly keepsAddress: boolean;
  /** Absent for a LUN that only the disk section names. */
  readonly item?: OvfItem;
  /** Marked as one to boot from. */
  readonly boot: boolean;
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
    const isLeft = mediaOf(item, undefined) === 'floppy' && chipset !== 'i440fx' && !item.own.has('media');
    if (isLeft) findings.note(`${quoted(item.label)} is left out: ${NO_FLOPPY}`);
    return !isLeft;
  });
  const read = possible.map((item): ReadDisk => {
    const { own } = item;
    const data = byId(item);
    const media = mediaOf(item, data);
    if (data !== undefined && used.has(data))
      findings.fault(`two devices have the disk ${quoted(data.alias ?? data.diskId)}`);
    if (data !== undefined) used.add(data);
    const isData = media === 'disk' || media === 'lun';
    if (isData && data === undefined)
      findings.fault(`${quoted(item.label)}: there is no such disk in the disk section`);
    const file = data?.file ?? fileOf(item, storage.files, findings);
    const name = own.get('name') ?? names.take(isData ? (data?.alias ?? item.label) : media, media);
    const bus = busOf(item, data, media, chipset, parents, envelope.product, findings);
    const isFull = bus.bus === 'sata' && bus.isReplaced && ++sata > MAX_SATA;
    return {
      disk: {
        id: `disk-${name}`,
        name,
        media,
        bus: isFull ? 'scsi' : bus.bus,
        ...contentOf(item, data, file, media),
        readonly: item.readonly || data?.readonly === true || media === 'cdrom',
        plugged: item.plugged,
        optional: own.get('optional') === 'true',
        ...ownDetails(own),
        ...lunOf(item, data, media),
      },
      keepsAddress: !bus.isReplaced,
      item,
      boot: data?.boot === true,
    };
  });
  return [
    ...read,
    ...storage.disks.filter((disk) => !used.has(disk)).flatMap((disk) => withoutItem(disk, names, findings)),
  ];
}

/** By the reference of the Item: `ovf:/disk/ID`, oVirt's `diskId/imageId`, or its own id. */
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

function mediaOf({ own, texts, resourceType }: OvfItem, data: OvfDisk | undefined): DiskMedia {
  const said = MEDIA.find((word) => word === (own.get('media') ?? texts.get('Device')));
  if (data?.lunId !== undefined && (said ?? 'disk') === 'disk' && !own.has('media')) return 'lun';
  if (said !== undefined) return said;
  if (resourceType === RESOURCE.floppy) return 'floppy';
  return resourceType === RESOURCE.disk ? 'disk' : 'cdrom';
}

function fileOf({ texts, label }: OvfItem, files: readonly OvfFile[], findings: Findings): OvfFile | undefined {
  const [, id] = /^(?:ovf:)?\/file\/(.+)$/.exec(texts.get('HostResource') ?? '') ?? [];
  if (id === undefined) return undefined;
  const file = files.find((known) => known.id === id);
  if (file === undefined) findings.fault(`${quoted(label)} is in the file ${quoted(id)}, which is not there`);
  return file;
}

function contentOf({ own }: OvfItem, data: OvfDisk | undefined, file: OvfFile | undefined, media: DiskMedia) {
  const sizeBytes = data?.sizeBytes ?? (media === 'disk' ? undefined : (numberOf(own.get('size')) ?? file?.sizeBytes));
  const format = own.get('format') === 'qcow2' ? 'qcow2' : (data?.format ?? 'raw');
  return {
    ...(file !== undefined && { file: file.href }),
    ...(sizeBytes !== undefined && { sizeBytes }),
    format,
  } as const;
}

function numberOf(text: string | undefined): number | undefined {
  return text !== undefined && /^[0-9]{1,16}$/.test(text) ? Number(text) : undefined;
}

function ownDetails(own: ReadonlyMap<string, string>) {
  const serial = own.get('serial');
  const cache = DISK_CACHES.find((word) => word === own.get('cache'));
  const hotpluggable = own.get('hotpluggable');
  return {
    ...(serial !== undefined && { serial }),
    ...(cache !== undefined && { cache }),
    ...(hotpluggable !== undefined && { hotpluggable: hotpluggable === 'true' }),
  };
}

function lunOf({ own }: OvfItem, data: OvfDisk | undefined, media: DiskMedia): Pick<DescribedDisk, 'lun'> {
  const [guid, uuid] = [own.get('lun-guid') ?? data?.lunId, own.get('lun-uuid')];
  if (uuid !== undefined) return { lun: { uuid } };
  return media === 'lun' || own.has('lun-guid') ? { lun: { guid } } : {};
}

interface Bus {
  readonly bus: DescribedDisk['bus'];
  /** The guest finds it on another bus than it had. */
  readonly isReplaced: boolean;
}

function busOf(
  item: OvfItem,
  data: OvfDisk | undefined,
  media: DiskMedia,
  chipset: Chipset | undefined,
  parents: ReadonlyMap<string, OvfItem>,
  product: Envelope['product'],
  findings: Findings,
): Bus {
  if (media === 'floppy') return { bus: 'fdc', isReplaced: false };
  const exact = DISK_BUSES.find((bus) => bus === item.own.get('bus'));
  if (exact !== undefined) return { bus: exact, isReplaced: false };
  if (media === 'lun')
    return { bus: 'scsi', isReplaced: data?.busText !== undefined && busOfInterface(data.busText) !== 'scsi' };
  const plain = plainBus(chipset);
  const said = data?.busText ?? (product === undefined ? controllerOf(item, parents) : plain);
  const bus = busOfInterface(said);
  if (bus !== undefined && isPossibleBus(bus, media, chipset)) return { bus, isReplaced: false };
  findings.note(`${quoted(item.label)}: the bus ${quoted(said)} is not there for this machine; it becomes ${plain}`);
  return { bus: plain, isReplaced: true };
}

/** What kind of controller the disk hangs on, in the words of oVirt where it is one of ours. */
function controllerOf({ texts }: OvfItem, parents: ReadonlyMap<string, OvfItem>): string {
  const parent = parents.get(texts.get('Parent') ?? '');
  const model = parent?.texts.get('ResourceSubType') ?? '';
  if (parent?.resourceType === RESOURCE.ide) return 'IDE';
  if (parent?.resourceType === RESOURCE.scsi) return /virtio/i.test(model) ? 'VirtIO_SCSI' : model || 'SCSI';
  return 'SATA';
}

/** oVirt tells of LUNs only in the disk section. Any other disk that nobody has is a contradiction. */
function withoutItem(data: OvfDisk, names: UniqueNames, findings: Findings): ReadDisk[] {
  const { alias, diskId, lunId, format, readonly, plugged, boot } = data;
  if (lunId === undefined) {
    findings.fault(`the disk ${quoted(alias ?? diskId)} belongs to no device`);
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
  return [{ disk: { ...disk, lun: { guid: lunId } }, keepsAddress: true, boot }];
}
