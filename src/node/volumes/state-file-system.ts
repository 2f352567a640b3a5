/**
 * The file system on a block volume that keeps state: ext4, made once, where there is nothing yet, and never over
 * anything else. It is made in a file beside and copied, the beginning last: killed at any moment, what is on the device
 * is nothing, a file system, or our own mark that says that it was begun.
 *
 *   empty ──► begun ──► ext4          other: somebody's data, refused
 */
import { constants } from 'node:fs';
import { open, readFile, type FileHandle } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { PRIVATE_FILE } from './disk-image.ts';
import { isErrorWithCode, type Directory } from './directory.ts';
import { failed, waiting, type Refusal, type VolumesHost } from './volumes-host.ts';

const { O_CREAT, O_EXCL, O_RDWR } = constants;

const MI = 2 ** 20;
/** State is small, and devices need not be: there is no more to make, and to copy, than that. */
export const MAX_BYTES = 64 * MI;
const SECTOR_BYTES = 512;
/** Written in one go: the superblock is in it. */
const BEGINNING_BYTES = 4096;
const MARK = Buffer.from('selfsame: a file system for state is being made here\n');
const MAGIC_AT = 1024 + 56;
const EXT_MAGIC = 0xef53;
const IMAGE = 'state.ext4.new';

export interface FileSystemWish {
  /** Without links. */
  readonly device: string;
  /** Whether other machines reach the device: the file system then finds out by itself who else has it mounted. */
  readonly isShared: boolean;
  /** For what is made beside. */
  readonly work: Directory;
}

/** Refuses a device that this machine uses. May be repeated. */
export async function ensureFileSystem(wish: FileSystemWish, host: VolumesHost): Promise<Refusal | undefined> {
  const { device } = wish;
  const opened = await openAlone(device);
  if (opened === undefined) return waiting('VolumeInUse', `Cannot use block device "${device}": it is in use`);
  await using file = opened;
  const beginning = Buffer.alloc(MI);
  const { bytesRead } = await file.read(beginning, 0, MI, 0);
  const looks = looksOf(beginning.subarray(0, bytesRead));
  if (looks === 'ext4') return undefined;
  if (looks === 'other') {
    return failed(
      'StateRefused',
      `Cannot keep state on block device "${device}": there is something else on it; expected ext4 or nothing`,
    );
  }
  await make(file, wish, host);
  return undefined;
}

/** Pure: by the first bytes of a device. */
export function looksOf(beginning: Buffer): 'empty' | 'begun' | 'ext4' | 'other' {
  if (beginning.subarray(0, MARK.length).equals(MARK)) return 'begun';
  if (isZero(beginning)) return 'empty';
  const hasMagic = beginning.length >= MAGIC_AT + 2 && beginning.readUInt16LE(MAGIC_AT) === EXT_MAGIC;
  return hasMagic ? 'ext4' : 'other';
}

/** The kernel lets nobody have a block device for himself that is mounted. */
async function openAlone(device: string): Promise<FileHandle | undefined> {
  try {
    return await open(device, O_RDWR | O_EXCL);
  } catch (error) {
    if (isErrorWithCode(error, 'EBUSY')) return undefined;
    throw error;
  }
}

async function make(device: FileHandle, wish: FileSystemWish, { run }: VolumesHost): Promise<void> {
  const { work, isShared } = wish;
  await work.unlink(IMAGE);
  await using image = await work.open(IMAGE, O_RDWR | O_CREAT | O_EXCL, PRIVATE_FILE);
  if (image === undefined) throw new Error(`Cannot make a file system in "${work.path}": it went away`);
  try {
    await image.truncate(Math.min(await sizeOf(wish.device), MAX_BYTES));
    // Nothing is kept back for root: what is written here, guests write.
    const features = isShared ? ['-O', 'mmp'] : [];
    await run('mkfs.ext4', ['-q', '-F', '-m', '0', ...features, join(work.path, IMAGE)]);
    await copyOver(image, device);
  } finally {
    await work.unlink(IMAGE);
  }
}

async function copyOver(image: FileHandle, device: FileHandle): Promise<void> {
  await writeAll(device, MARK, 0);
  await device.sync();
  const [from, there] = [Buffer.alloc(MI), Buffer.alloc(MI)];
  for (let at = BEGINNING_BYTES; ; at += MI) {
    const { bytesRead } = await image.read(from, 0, MI, at);
    if (bytesRead === 0) break;
    const wanted = from.subarray(0, bytesRead);
    await device.read(there, 0, bytesRead, at);
    if (!wanted.equals(there.subarray(0, bytesRead))) await writeAll(device, wanted, at);
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
