/**
 * Prepares hostDisk volumes: files of this machine that the instance names. They must be in a directory that the
 * administrator has designated; otherwise users who can create instances could access every file of the machine.
 */
import { posix } from 'node:path';
import type { VmiVolume } from '#api/domain/volume.ts';
import { isFileName, openBelow } from '#node/volumes/local/mounts/directory.ts';
import { ensureImage } from '#node/volumes/local/content/disk-image.ts';
import {
  parseBytes,
  failedRefusal,
  missingRefusal,
  type PreparedDisk,
  type VolumesHost,
} from '#node/volumes/local/volumes-host.ts';

type HostDisk = NonNullable<VmiVolume['hostDisk']>;

export async function prepareHostDisk(disk: HostDisk, host: VolumesHost): Promise<PreparedDisk> {
  const place = parseHostDiskPath(disk.path, host.hostDiskDirs);
  if (place === undefined) {
    const allowed = host.hostDiskDirs.map((dir) => `"${dir}"`).join(', ');
    return failedRefusal(
      'HostDiskForbidden',
      `Cannot use host disk "${disk.path}": expected a file below ${allowed || 'nothing'}`,
    );
  }
  if (disk.type === 'DiskOrCreate' && disk.capacity === undefined) {
    return failedRefusal('HostDiskRefused', `Cannot create host disk "${disk.path}": it has no capacity`);
  }
  const directory = await openBelow(place.root, place.directories);
  if (directory === 'link')
    return failedRefusal('HostDiskForbidden', `Cannot use host disk "${disk.path}": its path has a symbolic link`);
  if (directory === undefined) {
    return missingRefusal('ImageMissing', `Cannot use host disk "${disk.path}": its directory does not exist`);
  }
  await using found = directory;
  const createBytes = disk.type === 'DiskOrCreate' ? parseBytes(disk.capacity ?? 0) : undefined;
  const image = await ensureImage(found, { name: place.file, createBytes }, host);
  if (image.is !== 'ready') return image;
  return { is: 'ready', volume: { source: image.source, readonly: false, cacheNone: image.cacheNone } };
}

/** Splits the path below the allowed directory that contains it; undefined if there is none. Pure. */
export function parseHostDiskPath(
  path: string,
  allowed: readonly string[],
): { root: string; directories: readonly string[]; file: string } | undefined {
  const normal = posix.normalize(path);
  if (!posix.isAbsolute(path) || normal.endsWith('/')) return undefined;
  for (const root of allowed) {
    const names = posix.relative(root, normal).split('/');
    const file = names.at(-1) ?? '';
    if (names.every(isFileName)) return { root, directories: names.slice(0, -1), file };
  }
  return undefined;
}
