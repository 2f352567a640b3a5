/**
 * Finds the files and block devices for VMs of the host API: files below <node dir>/host-images, without following
 * links, and LUNs of the machine. Like all media, they are handed to the guest user.
 */
import { chmod, mkdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import type { Medium } from '#node/definition/devices/disk.ts';
import { openBelow } from '#node/volumes/local/mounts/directory.ts';
import { prepareDirectLun } from '#node/volumes/local/mounts/direct-lun.ts';
import { ensureImage } from '#node/volumes/local/content/disk-image.ts';
import { runCommand } from '#node/volumes/local/run-command.ts';
import type { SentDiskSource } from '#node/host-api/sent/disk-source.ts';

export interface MediumOptions {
  readonly readonly: boolean;
  /** The format according to the caller; detected if absent. */
  readonly format?: 'raw' | 'qcow2';
}

type MediumLookup =
  | { readonly medium: Medium; readonly error?: undefined }
  /** `isMissing`: no file or device has this name. */
  | { readonly error: string; readonly isMissing: boolean; readonly medium?: undefined };

export interface HostImages {
  /** An absolute path without links. */
  readonly dir: string;
  find(source: Exclude<SentDiskSource, { is: 'none' | 'invalid' }>, options: MediumOptions): Promise<MediumLookup>;
}

interface HostImagesOptions {
  readonly nodeDir: string;
  /** Default: /dev. */
  readonly devDir?: string;
}

const DIR = 'host-images';
/** Guests can traverse the directory but not list it. */
const TRAVERSE_ONLY = 0o711;

/** Creates the directory if it is missing. */
export async function openHostImages({ nodeDir, devDir = '/dev' }: HostImagesOptions): Promise<HostImages> {
  const dir = join(await realpath(nodeDir), DIR);
  await mkdir(dir, { recursive: true });
  await chmod(dir, TRAVERSE_ONLY);
  return {
    dir,
    async find(source, options) {
      try {
        if (source.is === 'file') return await findFile(dir, source.names, options);
        const { guid, uuid } = source;
        const lun = { ...(guid === undefined ? {} : { guid }), ...(uuid === undefined ? {} : { uuid }) };
        const prepared = await prepareDirectLun(lun, { devDir });
        if (prepared.is !== 'ready') return { error: prepared.message, isMissing: prepared.isMissing === true };
        return { medium: { ...prepared.volume, readonly: options.readonly } };
      } catch (error) {
        // An error of a system call is about the requested file, so it is an answer. Other errors are our own bugs.
        if (!(error instanceof Error) || !('syscall' in error)) throw error;
        return { error: error.message, isMissing: false };
      }
    },
  };
}

async function findFile(
  dir: string,
  names: readonly string[],
  { readonly, format }: MediumOptions,
): Promise<MediumLookup> {
  const path = join(dir, ...names);
  const directory = await openBelow(dir, names.slice(0, -1));
  if (directory === 'link') return { error: `"${path}" is behind a symbolic link`, isMissing: false };
  if (directory === undefined) return { error: `"${path}" does not exist`, isMissing: true };
  await using found = directory;
  const options = { name: names.at(-1) ?? '', readonly, alwaysRaw: format === 'raw' };
  const image = await ensureImage(found, options, { run: runCommand });
  if (image.is !== 'ready') return { error: image.message, isMissing: image.isMissing === true };
  if (format !== undefined && image.source.format !== format) {
    return { error: `"${path}" is not a ${format} image`, isMissing: false };
  }
  return { medium: { source: image.source, readonly, cacheNone: image.cacheNone } };
}
