/** Reads the files and the disk section of an OVF, without their assignment to devices. */
import { findDuplicates, type Findings } from '#formats/findings.ts';
import type { DiskFormat } from '#formats/machine.ts';
import type { Envelope } from '#formats/ovf/envelope.ts';
import { OWN } from '#formats/ovf/vocabulary.ts';
import { checkPath } from '#lib/files/safe-path.ts';
import { attributeOf, childrenNamed, type XmlElement } from '#lib/xml/xml.ts';
import { quoteText } from '#lib/text/quote-text.ts';

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
/** Larger sizes are not exact numbers, and no real disk has them. */
const MAX_BYTES = Number.MAX_SAFE_INTEGER;

export function readStorage(envelope: Envelope, findings: Findings): OvfStorage {
  const files = limitEntries('files', childrenNamed(envelope.references, 'File'), findings).flatMap((element) =>
    readFileReference(element, findings),
  );
  for (const key of ['id', 'href'] as const) {
    const twice = findDuplicates(files.map((file) => file[key]));
    for (const value of twice) findings.addError(`two files have the ${key} ${quoteText(value)}`);
  }
  const disks = limitEntries('disks', childrenNamed(envelope.disks, 'Disk'), findings).map((element) =>
    readDisk(element, files, envelope, findings),
  );
  for (const id of findDuplicates(disks.map(({ diskId }) => diskId)))
    findings.addError(`two disks have the id ${quoteText(id)}`);
  return { files, disks };
}

function limitEntries(what: string, elements: readonly XmlElement[], findings: Findings): readonly XmlElement[] {
  if (elements.length > MAX_ENTRIES)
    findings.addError(`there are ${elements.length} ${what}, more than ${MAX_ENTRIES}`);
  return elements.slice(0, MAX_ENTRIES);
}

function readFileReference(element: XmlElement, findings: Findings): OvfFile[] {
  const href = attributeOf(element, 'href') ?? '';
  const id = attributeOf(element, 'id') ?? href;
  // A storage device, not a file.
  if (attributeOf(element, 'disk_storage_type') === 'LUN') return [];
  const problem = checkPath(href);
  if (problem !== undefined) findings.addError(`the file ${quoteText(href)} ${problem}`);
  if (attributeOf(element, 'compression') !== undefined)
    findings.addError(`the file ${quoteText(href)} is compressed, which is not supported`);
  if (attributeOf(element, 'chunkSize') !== undefined)
    findings.addError(`the file ${quoteText(href)} is split into chunks, which is not supported`);
  const sizeBytes = parseSizeBytes(attributeOf(element, 'size'), 1, `the file ${quoteText(href)}`, findings);
  return [{ id, href, ...(sizeBytes !== undefined && { sizeBytes }) }];
}

function readDisk(element: XmlElement, files: readonly OvfFile[], { product }: Envelope, findings: Findings): OvfDisk {
  const get = (name: string) => attributeOf(element, name) || undefined;
  const diskId = get('diskId') ?? '';
  const alias = get('disk-alias');
  const label = `the disk ${quoteText(alias ?? diskId)}`;
  const fileRef = get('fileRef');
  const lunId = get('lun_id');
  const isLun = lunId !== undefined || attributeOf(element, 'uuid', OWN) !== undefined;
  const file = isLun ? undefined : files.find(({ id, href }) => id === fileRef || href === fileRef);
  if (diskId === '') findings.addError(`${label} has no id`);
  if (fileRef !== undefined && file === undefined && !isLun)
    findings.addError(`${label} is in the file ${quoteText(fileRef)}, which is missing`);
  if (fileRef === undefined && !isLun && product === 'oVirt') findings.addError(`${label} has no file`);
  if (get('parentRef') !== undefined)
    findings.addError(`${label} has a parent disk (a snapshot); merge its snapshots before the export`);
  const sizeBytes = readCapacity(element, product !== undefined, label, findings);
  const format = detectFormat(get('volume-format'), get('format'), file?.href);
  if (format === 'raw' && sizeBytes !== undefined && (file?.sizeBytes ?? 0) > sizeBytes) {
    findings.addError(`${label} has ${sizeBytes} bytes, but its file has ${file?.sizeBytes}`);
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

/** Returns the size in bytes. oVirt rounds up to whole GiB; our own attribute is exact. */
function readCapacity(element: XmlElement, isOvirt: boolean, who: string, findings: Findings): number | undefined {
  const exact = attributeOf(element, 'capacity', OWN);
  if (exact !== undefined) return parseSizeBytes(exact, 1, who, findings);
  const size = isOvirt ? attributeOf(element, 'size') : undefined;
  if (size !== undefined) return parseSizeBytes(size, GIB, who, findings);
  const capacity = element.attributes.find((a) => a.name === 'capacity' && a.namespace !== OWN)?.value;
  const unit = parseUnit(attributeOf(element, 'capacityAllocationUnits') ?? 'byte');
  if (unit !== undefined) return parseSizeBytes(capacity, unit, who, findings);
  findings.addError(`${who}: the unit of its capacity is unknown`);
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

/** Returns the bytes of a unit such as `byte * 2^30` or `MegaBytes`, or undefined if it is unknown. */
export function parseUnit(text: string): number | undefined {
  const word = text.trim().toLowerCase();
  const named = UNITS.get(word);
  if (named !== undefined) return named;
  const [, factor, exponent] = /^bytes?\s*\*\s*([0-9]{1,10})(?:\s*\^\s*([0-9]{1,2}))?$/.exec(word) ?? [];
  return factor === undefined ? undefined : Number(factor) ** Number(exponent ?? 1);
}

function parseSizeBytes(text: string | undefined, unit: number, who: string, findings: Findings): number | undefined {
  if (text === undefined || text === '') return undefined;
  const value = /^[0-9]{1,20}$/.test(text) ? Number(text) * unit : Number.NaN;
  if (value <= MAX_BYTES) return value;
  findings.addError(`${who}: the size ${quoteText(text)} is invalid`);
  return undefined;
}

function detectFormat(volumeFormat = '', format = '', href = ''): DiskFormat {
  if (/^(?:cow|qcow2)$/i.test(volumeFormat)) return 'qcow2';
  if (/^raw$/i.test(volumeFormat)) return 'raw';
  if (/qcow/i.test(format) || /\.qcow2?$/i.test(href)) return 'qcow2';
  return /vmdk/i.test(format) || /\.vmdk$/i.test(href) ? 'vmdk' : 'raw';
}
