/**
 * Creates the ext4 file system on a block volume for persistent state: once, on an empty device, and never over
 * existing data. It is created in a separate file and copied, the beginning last. If the agent is killed at any moment,
 * the device is empty, has the file system, or has our mark that the creation has begun.
 *
 *   empty ──► begun ──► ext4          other: existing data, refused
 */
import { constants } from 'node:fs';
import { open, readFile, type FileHandle } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { PRIVATE_FILE } from '#node/volumes/local/content/disk-image.ts';
import { isErrorWithCode, type Directory } from '#node/volumes/local/mounts/directory.ts';
import {
  failedRefusal,
  waitingRefusal,
  type VolumeRefusal,
  type VolumesHost,
} from '#node/volumes/local/volumes-host.ts';

const { O_CREAT, O_EXCL, O_RDWR } = constants;

const MI = 2 ** 20;
/** Limits the size of the file system, because persistent state is small even if the device is large. */
export const MAX_BYTES = 64 * MI;
const SECTOR_BYTES = 512;
/** Written in one call; contains the superblock. */
const BEGINNING_BYTES = 4096;
const MARK = Buffer.from('selfsame: a file system for state is being made here\n');
const MAGIC_AT = 1024 + 56;
const EXT_MAGIC = 0xef53;
const IMAGE = 'state.ext4.new';

interface FileSystemOptions {
  /** A path without links. */
  readonly device: string;
  /** True if other machines can access the device; the file system then detects that another machine has mounted it. */
  readonly isShared: boolean;
  /** The directory for the temporary file. */
  readonly work: Directory;
}

/** Creates the file system if it is missing. Refuses a device that this machine uses. May be repeated. */
export async function ensureFileSystem(
  options: FileSystemOptions,
  host: VolumesHost,
): Promise<VolumeRefusal | undefined> {
  const { device } = options;
  const opened = await openExclusively(device);
  if (opened === undefined) return waitingRefusal('VolumeInUse', `Cannot use block device "${device}": it is in use`);
  await using file = opened;
  const beginning = Buffer.alloc(MI);
  const { bytesRead } = await file.read(beginning, 0, MI, 0);
  const content = detectContent(beginning.subarray(0, bytesRead));
  if (content === 'ext4') return undefined;
  if (content === 'other') {
    return failedRefusal(
      'StateRefused',
      `Cannot keep persistent state on block device "${device}": it contains other data; expected ext4 or an empty device`,
    );
  }
  await createFileSystem(file, options, host);
  return undefined;
}

/** Detects the content of a device by its first bytes. Pure. */
export function detectContent(beginning: Buffer): 'empty' | 'begun' | 'ext4' | 'other' {
  if (beginning.subarray(0, MARK.length).equals(MARK)) return 'begun';
  if (isZero(beginning)) return 'empty';
  const hasMagic = beginning.length >= MAGIC_AT + 2 && beginning.readUInt16LE(MAGIC_AT) === EXT_MAGIC;
  return hasMagic ? 'ext4' : 'other';
}

/** Returns undefined if the device is in use: the kernel refuses to open a mounted device exclusively. */
async function openExclusively(device: string): Promise<FileHandle | undefined> {
  try {
    return await open(device, O_RDWR | O_EXCL);
  } catch (error) {
    if (isErrorWithCode(error, 'EBUSY')) return undefined;
    throw error;
  }
}

async function createFileSystem(device: FileHandle, options: FileSystemOptions, { run }: VolumesHost): Promise<void> {
  const { work, isShared } = options;
  await work.unlink(IMAGE);
  await using image = await work.open(IMAGE, O_RDWR | O_CREAT | O_EXCL, PRIVATE_FILE);
  if (image === undefined)
    throw new Error(`Cannot create a file system in "${work.path}": the directory was removed meanwhile`);
  try {
    await image.truncate(Math.min(await sizeOf(options.device), MAX_BYTES));
    // No blocks are reserved for root, because only guests write here.
    const features = isShared ? ['-O', 'mmp'] : [];
    await run('mkfs.ext4', ['-q', '-F', '-m', '0', ...features, join(work.path, IMAGE)]);
    await copyToDevice(image, device);
  } finally {
    await work.unlink(IMAGE);
  }
}

async function copyToDevice(image: FileHandle, device: FileHandle): Promise<void> {
  await writeAll(device, MARK, 0);
  await device.sync();
  const [from, present] = [Buffer.alloc(MI), Buffer.alloc(MI)];
  for (let at = BEGINNING_BYTES; ; at += MI) {
    const { bytesRead } = await image.read(from, 0, MI, at);
    if (bytesRead === 0) break;
    const wanted = from.subarray(0, bytesRead);
    await device.read(present, 0, bytesRead, at);
    if (!wanted.equals(present.subarray(0, bytesRead))) await writeAll(device, wanted, at);
  }
  await device.sync();
  const beginning = Buffer.alloc(BEGINNING_BYTES);
  await image.read(beginning, 0, BEGINNING_BYTES, 0);
  await writeAll(device, beginning, 0);
  await device.sync();
}

async function writeAll(file: FileHandle, bytes: Buffer, at: number): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    done += (await file.write(bytes, done, bytes.length - done, at + done)).bytesWritten;
  }
}

async function sizeOf(device: string): Promise<number> {
  return Number(await readFile(`/sys/class/block/${basename(device)}/size`, 'utf8')) * SECTOR_BYTES;
}

function isZero(bytes: Buffer): boolean {
  return bytes.equals(Buffer.alloc(bytes.length));
}
