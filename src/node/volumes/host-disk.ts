/**
 * hostDisk: a file of this machine that the instance names itself. Whoever may create instances would otherwise read and
 * write every file of the machine, so it must lie in a directory that the administrator has set aside for that.
 */
import { posix } from 'node:path';
import type { Volume } from '#api/domain/volume.ts';
import { isFileName, openBelow } from './directory.ts';
import { ensureImage } from './disk-image.ts';
import { bytesOf, failed, missing, type Prepared, type VolumesHost } from './volumes-host.ts';

export type HostDisk = NonNullable<Volume['hostDisk']>;

export async function prepareHostDisk(disk: HostDisk, host: VolumesHost): Promise<Prepared> {
  const place = hostDiskPlace(disk.path, host.hostDiskDirs);
  if (place === undefined) {
    const allowed = host.hostDiskDirs.map((dir) => `"${dir}"`).join(', ');
    return failed(
      'HostDiskForbidden',
      `Cannot use host disk "${disk.path}": expected a file below ${allowed || 'nothing'}`,
    );
  }
  if (disk.type === 'DiskOrCreate' && disk.capacity === undefined) {
    return failed('HostDiskRefused', `Cannot make host disk "${disk.path}": it has no capacity`);
  }
  const directory = await openBelow(place.root, place.directories);
  if (directory === 'link')
    return failed('HostDiskForbidden', `Cannot use host disk "${disk.path}": a link is on the way`);
  if (directory === undefined) {
    return missing('ImageMissing', `Cannot use host disk "${disk.path}": its directory does not exist`);
  }
  await using found = directory;
  const createBytes = disk.type === 'DiskOrCreate' ? bytesOf(disk.capacity ?? 0) : undefined;
  const image = await ensureImage(found, { name: place.file, createBytes }, host);
  if (image.is !== 'ready') return image;
  return { is: 'ready', volume: { source: image.source, readonly: false, cacheNone: image.cacheNone } };
}

/** Pure: the path taken apart below the directory that allows it; undefined where none does. */
export function hostDiskPlace(
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
