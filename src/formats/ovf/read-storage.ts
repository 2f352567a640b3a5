/** The files that an OVF names, and its disks: what there is of data, before anybody says which device has it. */
import { quoted, repeated, type Findings } from '#formats/faults.ts';
import type { DiskFormat } from '#formats/machine.ts';
import type { Envelope } from '#formats/ovf/envelope.ts';
import { OWN } from '#formats/ovf/vocabulary.ts';
import { pathFault } from '#formats/safe-path.ts';
import { attributeOf, childrenNamed, type XmlElement } from '#lib/xml.ts';

export interface OvfFile {
  readonly id: string;
  readonly href: string;
  readonly sizeBytes?: number;
}

export interface OvfDisk {
  readonly diskId: string;
  readonly fileRef?: string;
  readonly file?: OvfFile;
  readonly sizeBytes?: number;
  readonly format: DiskFormat;
  readonly busText?: string;
  readonly boot: boolean;
  readonly readonly: boolean;
  readonly plugged: boolean;
  readonly alias?: string;
  readonly lunId?: string;
}

export interface OvfStorage {
  readonly files: readonly OvfFile[];
  readonly disks: readonly OvfDisk[];
}

const MAX_ENTRIES = 1024;
const GIB = 1024 ** 3;
/** 64 EiB and the like are lies; whatever is below is still exact. */
const MAX_BYTES = Number.MAX_SAFE_INTEGER;

export function readStorage(envelope: Envelope, findings: Findings): OvfStorage {
  const files = firstOf('files', childrenNamed(envelope.references, 'File'), findings).flatMap((element) =>
    readFile(element, findings),
  );
  for (const key of ['id', 'href'] as const) {
    const twice = repeated(files.map((file) => file[key]));
    for (const value of twice) findings.fault(`two files have the ${key} ${quoted(value)}`);
  }
  const disks = firstOf('disks', childrenNamed(envelope.disks, 'Disk'), findings).map((element) =>
    readDisk(element, files, envelope, findings),
  );
  for (const id of repeated(disks.map(({ diskId }) => diskId))) findings.fault(`two disks have the id ${quoted(id)}`);
  return { files, disks };
}

function firstOf(what: string, elements: readonly XmlElement[], findings: Findings): readonly XmlElement[] {
  if (elements.length > MAX_ENTRIES) findings.fault(`there are ${elements.length} ${what}, more than ${MAX_ENTRIES}`);
  return elements.slice(0, MAX_ENTRIES);
}

function readFile(element: XmlElement, findings: Findings): OvfFile[] {
  const href = attributeOf(element, 'href') ?? '';
  const id = attributeOf(element, 'id') ?? href;
  // Not a file, but a device of the storage.
  if (attributeOf(element, 'disk_storage_type') === 'LUN') return [];
  const fault = pathFault(href);
  if (fault !== undefined) findings.fault(`the file ${quoted(href)} ${fault}`);
  if (attributeOf(element, 'compression') !== undefined)
    findings.fault(`the file ${quoted(href)} is compressed, which we do not read`);
  if (attributeOf(element, 'chunkSize') !== undefined)
    findings.fault(`the file ${quoted(href)} is cut into chunks, which we do not read`);
  const sizeBytes = bytesOf(attributeOf(element, 'size'), 1, `the file ${quoted(href)}`, findings);
  return [{ id, href, ...(sizeBytes !== undefined && { sizeBytes }) }];
}

function readDisk(element: XmlElement, files: readonly OvfFile[], { product }: Envelope, findings: Findings): OvfDisk {
  const get = (name: string) => attributeOf(element, name) || undefined;
  const diskId = get('diskId') ?? '';
  const alias = get('disk-alias');
  const who = `the disk ${quoted(alias ?? diskId)}`;
  const fileRef = get('fileRef');
  const lunId = get('lun_id');
  const isLun = lunId !== undefined || attributeOf(element, 'uuid', OWN) !== undefined;
  const file = isLun ? undefined : files.find(({ id, href }) => id === fileRef || href === fileRef);
  if (diskId === '') findings.fault(`${who} has no id`);
  if (fileRef !== undefined && file === undefined && !isLun)
    findings.fault(`${who} is in the file ${quoted(fileRef)}, which is not there`);
  if (fileRef === undefined && !isLun && product === 'oVirt') findings.fault(`${who} has no file`);
  if (get('parentRef') !== undefined) findings.fault(`${who} stands on another one (a snapshot); export it collapsed`);
  const sizeBytes = capacityOf(element, product !== undefined, who, findings);
  const format = formatOf(get('volume-format'), get('format'), file?.href);
  if (format === 'raw' && sizeBytes !== undefined && (file?.sizeBytes ?? 0) > sizeBytes) {
    findings.fault(`${who} has ${sizeBytes} bytes, but its file has ${file?.sizeBytes}`);
  }
  return {
    diskId,
    fileRef,
    file,
    sizeBytes,
    format,
    busText: get('disk-interface'),
    boot: get('boot')?.toLowerCase() === 'true',
    readonly: get('read-only')?.toLowerCase() === 'true',
    plugged: get('plugged')?.toLowerCase() !== 'false',
    alias,
    lunId,
  };
}

/** oVirt counts whole GiB, rounded up; ours says besides how many bytes it is. */
function capacityOf(element: XmlElement, isOvirt: boolean, who: string, findings: Findings): number | undefined {
  const exact = attributeOf(element, 'capacity', OWN);
  if (exact !== undefined) return bytesOf(exact, 1, who, findings);
  const size = isOvirt ? attributeOf(element, 'size') : undefined;
  if (size !== undefined) return bytesOf(size, GIB, who, findings);
  const capacity = element.attributes.find((a) => a.name === 'capacity' && a.namespace !== OWN)?.value;
  const unit = unitBytes(attributeOf(element, 'capacityAllocationUnits') ?? 'byte');
  if (unit !== undefined) return bytesOf(capacity, unit, who, findings);
  findings.fault(`${who}: the unit of its capacity is not known`);
  return undefined;
}

const UNITS = new Map([
  ['byte', 1],
  ['bytes', 1],
  ['kilobytes', 1024],
  ['megabytes', 1024 ** 2],
  ['mb', 1024 ** 2],
  ['gigabytes', GIB],
  ['gb', GIB],
]);

/** `byte * 2^30`, `MegaBytes`; undefined for what is no unit. */
export function unitBytes(text: string): number | undefined {
  const word = text.trim().toLowerCase();
  const named = UNITS.get(word);
  if (named !== undefined) return named;
  const [, factor, exponent] = /^bytes?\s*\*\s*([0-9]{1,10})(?:\s*\^\s*([0-9]{1,2}))?$/.exec(word) ?? [];
  return factor === undefined ? undefined : Number(factor) ** Number(exponent ?? 1);
}

function bytesOf(text: string | undefined, unit: number, who: string, findings: Findings): number | undefined {
  if (text === undefined || text === '') return undefined;
  const value = /^[0-9]{1,20}$/.test(text) ? Number(text) * unit : Number.NaN;
  if (value <= MAX_BYTES) return value;
  findings.fault(`${who}: the size ${quoted(text)} is not possible`);
  return undefined;
}

function formatOf(volumeFormat = '', format = '', href = ''): DiskFormat {
  if (/^(?:cow|qcow2)$/i.test(volumeFormat)) return 'qcow2';
  if (/^raw$/i.test(volumeFormat)) return 'raw';
  if (/qcow/i.test(format) || /\.qcow2?$/i.test(href)) return 'qcow2';
  return /vmdk/i.test(format) || /\.vmdk$/i.test(href) ? 'vmdk' : 'raw';
}
