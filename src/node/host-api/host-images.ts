/**
 * The files and block devices that VMs of the host API may have: files below <node dir>/host-images, never through links,
 * and LUNs of the machine. They become the guest user's, as all media do.
 */
import { chmod, mkdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import type { Medium } from '#node/definition/devices/disk.ts';
import { openBelow } from '#node/volumes/directory.ts';
import { prepareDirectLun } from '#node/volumes/direct-lun.ts';
import { ensureImage } from '#node/volumes/disk-image.ts';
import { runCommand } from '#node/volumes/run-command.ts';
import type { GuestUser } from '#node/volumes/volumes-host.ts';
import type { SourceName } from '#node/host-api/disk-source.ts';

export interface MediumWish {
  readonly readonly: boolean;
  /** What it was said to be; otherwise it is looked at. */
  readonly format?: 'raw' | 'qcow2';
}

export type FoundMedium =
  | { readonly medium: Medium; readonly fault?: undefined }
  /** `isMissing`: there is nothing of this name. */
  | { readonly fault: string; readonly isMissing: boolean; readonly medium?: undefined };

export interface HostImages {
  /** Absolute and without links. */
  readonly dir: string;
  find(source: Exclude<SourceName, { is: 'none' | 'wrong' }>, wish: MediumWish): Promise<FoundMedium>;
}

export interface HostImagesOptions {
  readonly nodeDir: string;
  readonly guestUser: GuestUser | undefined;
  /** /dev unless set. */
  readonly devDir?: string;
}

const DIR = 'host-images';
/** Guests pass but cannot look around. */
const PASSABLE = 0o711;

/** Makes the directory where it is missing. */
export async function openHostImages({ nodeDir, guestUser, devDir = '/dev' }: HostImagesOptions): Promise<HostImages> {
  const dir = join(await realpath(nodeDir), DIR);
  await mkdir(dir, { recursive: true });
  await chmod(dir, PASSABLE);
  return {
    dir,
    async find(source, wish) {
      try {
        if (source.is === 'file') return await findFile(dir, source.names, wish, guestUser);
        const { guid, uuid } = source;
        const lun = { ...(guid === undefined ? {} : { guid }), ...(uuid === undefined ? {} : { uuid }) };
        const prepared = await prepareDirectLun(lun, { devDir, guestUser });
        if (prepared.is !== 'ready') return { fault: prepared.message, isMissing: prepared.isMissing === true };
        return { medium: { ...prepared.volume, readonly: wish.readonly } };
      } catch (error) {
        // What the machine says about a file is about what was asked for; our own mistakes are not.
        if (!(error instanceof Error) || !('syscall' in error)) throw error;
        return { fault: error.message, isMissing: false };
      }
    },
  };
}

async function findFile(
  dir: string,
  names: readonly string[],
  { readonly, format }: MediumWish,
  guestUser: GuestUser | undefined,
): Promise<FoundMedium> {
  const path = join(dir, ...names);
  const directory = await openBelow(dir, names.slice(0, -1));
  if (directory === 'link') return { fault: `a link is on the way to "${path}"`, isMissing: false };
  if (directory === undefined) return { fault: `there is no "${path}"`, isMissing: true };
  await using found = directory;
  const wish = { name: names.at(-1) ?? '', readonly, alwaysRaw: format === 'raw' };
  const image = await ensureImage(found, wish, { guestUser, run: runCommand });
  if (image.is !== 'ready') return { fault: image.message, isMissing: image.isMissing === true };
  if (format !== undefined && image.source.format !== format) {
    return { fault: `"${path}" is no ${format} image`, isMissing: false };
  }
  return { medium: { source: image.source, readonly, cacheNone: image.cacheNone } };
}
