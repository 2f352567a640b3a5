/** Checks whether a local file is a complete disk image, and reads what boots from it. */
import type { DiskStreamFormat } from '#api/storage/disk-stream.ts';
import { findUnsupportedFormat, HEADER_BYTES, readImageHeader } from '#api/storage/image-header.ts';
import { describeOtherContent } from '#cli/commands/image-upload/other-content.ts';
import { CommandError } from '#lib/command-line/command-error.ts';
import { readBootSupport, type BootSupport } from '#lib/disk-image/boot-support.ts';
import type { ByteSource } from '#lib/disk-image/byte-source.ts';
import { findMissingEnd } from '#lib/disk-image/declared-size.ts';
import { hasDiskSign, SIGNS_BYTES } from '#lib/disk-image/disk-signs.ts';
import { DamagedImageError, Qcow2Image, type Qcow2Data } from '#lib/disk-image/qcow2-image.ts';
import { bytesText } from '#lib/terminal/progress-text.ts';

const TO_QCOW2 = 'convert it with "qemu-img convert -O qcow2"';
const COMPRESSIONS: ReadonlySet<string> = new Set(['gzip', 'xz', 'zstd']);
const FORCE = 'use --force to upload it anyway';

/** Returns the format. Throws CommandError if it is not supported, or without `force` if the file has no sign of a disk. */
export function checkHeader(path: string, prefix: Buffer, force: boolean) {
  const foreign = findUnsupportedFormat(prefix);
  if (foreign !== undefined) {
    const how = COMPRESSIONS.has(foreign) ? 'decompress it' : TO_QCOW2;
    throw new CommandError(`Cannot upload ${path}: its format is ${foreign}; expected raw or qcow2: ${how} first`);
  }
  const image = readImageHeader(prefix.subarray(0, HEADER_BYTES));
  if (image.is === 'refused') {
    throw new CommandError(`Cannot upload ${path}: ${image.why}; expected a raw or a self-contained qcow2 image`);
  }
  if (image.is === 'qcow2' && image.virtualBytes === 0)
    throw new CommandError(`Cannot upload ${path}: its disk is empty`);
  if (image.is === 'raw' && !force) refuseWrongFile(path, prefix);
  return image;
}

/** Throws if the file has no sign of a disk. */
function refuseWrongFile(path: string, prefix: Buffer): void {
  const other = describeOtherContent(prefix);
  if (other !== undefined) {
    throw new CommandError(
      `Cannot upload ${path}: it is ${other.what}, not a disk image; ${other.advice}, or ${FORCE}`,
    );
  }
  if (hasDiskSign(prefix.subarray(0, SIGNS_BYTES))) return;
  const why = 'it has no partition table, boot sector, file system or ISO 9660 signature';
  throw new CommandError(`Cannot upload ${path}: ${why}; check that it is a disk image, or ${FORCE}`);
}

interface Inspection {
  readonly boot?: BootSupport | undefined;
  /** The data of a qcow2 image, as far as its tables are known. */
  readonly data?: Qcow2Data;
}

/** Inspects an image whose header was checked. Throws CommandError if it is damaged, or without `force` if it ends early. */
export async function inspectImage(
  path: string,
  file: ByteSource,
  format: DiskStreamFormat,
  force: boolean,
): Promise<Inspection> {
  try {
    if (format === 'raw') return { boot: await inspectDisk(path, file, force) };
    const image = await Qcow2Image.open(file);
    if (image === undefined) return {};
    const data = await image.check();
    return { data, boot: await inspectDisk(path, image, force) };
  } catch (cause) {
    if (!(cause instanceof DamagedImageError)) throw cause;
    throw new CommandError(`Cannot upload ${path}: ${cause.message}`, { cause });
  }
}

async function inspectDisk(path: string, disk: ByteSource, force: boolean): Promise<BootSupport | undefined> {
  const missing = force ? undefined : await findMissingEnd(disk);
  if (missing === undefined) return await readBootSupport(disk);
  const [is, declared] = [disk.size, missing.bytes].map((bytes) => `${bytes} bytes (${bytesText(bytes)})`);
  throw new CommandError(
    `Cannot upload ${path}: it is incomplete: its disk has ${is}, but its ${missing.source} needs ${declared}; download or copy it again, or ${FORCE}`,
  );
}
