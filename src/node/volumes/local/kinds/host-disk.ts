/**
 * Prepares hostDisk volumes: files of this machine that the instance names. They must be in a directory that the
 * administrator has designated, in the subdirectory of the namespace of the instance: `host-disks/NAMESPACE/`. Otherwise
 * users who can create instances could access every file of the machine, or the files of other namespaces.
 *
 * The administrator can allow single files elsewhere below the directory, in `host-disks/allowed.txt`: one line for each,
 * with a namespace, a space and the path of the file in the directory. No namespace can have the name of this file.
 */
import { constants } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { posix } from 'node:path';
import type { VmiVolume } from '#api/domain/volume.ts';
import { Directory, isErrorWithCode, isFileName, openBelow } from '#node/volumes/local/mounts/directory.ts';
import { ensureImage } from '#node/volumes/local/content/disk-image.ts';
import {
  parseBytes,
  failedRefusal,
  missingRefusal,
  type PreparedDisk,
  type VolumesHost,
} from '#node/volumes/local/volumes-host.ts';

const { O_RDONLY } = constants;
/** QEMU, which runs as another user and gets full paths, can traverse the directory but not list it. */
const TRAVERSE_ONLY = 0o711;

type HostDisk = NonNullable<VmiVolume['hostDisk']>;

const ALLOWED_FILE = 'allowed.txt';
const MAX_ALLOWED_BYTES = 64 * 1024;

export async function prepareHostDisk(disk: HostDisk, namespace: string, host: VolumesHost): Promise<PreparedDisk> {
  const place = parseHostDiskPath(disk.path, host.hostDiskDirs);
  if (place === undefined) {
    const allowed = host.hostDiskDirs.map((dir) => `"${dir}"`).join(', ');
    return failedRefusal(
      'HostDiskForbidden',
      `Cannot use host disk "${disk.path}": expected a file below ${allowed || 'nothing'}`,
    );
  }
  const isOwn = place.directories[0] === namespace;
  if (!isOwn && !(await isAllowed(place, namespace))) {
    const own = posix.join(place.root, namespace);
    const line = `${namespace} ${[...place.directories, place.file].join('/')}`;
    return failedRefusal(
      'HostDiskForbidden',
      `Cannot use host disk "${disk.path}": instances of namespace "${namespace}" can use files below "${own}"; ` +
        `move the file there, or let the administrator of the node add the line "${line}" to "${posix.join(place.root, ALLOWED_FILE)}"`,
    );
  }
  if (disk.type === 'DiskOrCreate' && disk.capacity === undefined) {
    return failedRefusal('HostDiskRefused', `Cannot create host disk "${disk.path}": it has no capacity`);
  }
  if (disk.type === 'DiskOrCreate' && isOwn && place.directories.length === 1) {
    await makeDirectory(posix.join(place.root, namespace));
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

interface HostDiskPlace {
  readonly root: string;
  readonly directories: readonly string[];
  readonly file: string;
}

/** Reports whether the administrator has allowed the file for the namespace. */
async function isAllowed({ root, directories, file }: HostDiskPlace, namespace: string): Promise<boolean> {
  await using found = await Directory.open(root);
  // A link, a directory or a large file is no list.
  await using list = await found?.open(ALLOWED_FILE, O_RDONLY).catch(() => undefined);
  if (list === undefined) return false;
  const stats = await list.stat();
  if (!stats.isFile() || stats.size > MAX_ALLOWED_BYTES) return false;
  const wanted = `${namespace} ${[...directories, file].join('/')}`;
  return (await list.readFile('utf8')).split('\n').some((line) => line.trim() === wanted);
}

/** Creates the directory of a namespace. A repeated call does nothing. */
async function makeDirectory(path: string): Promise<void> {
  await mkdir(path, { mode: TRAVERSE_ONLY }).catch((error: unknown) => {
    if (!isErrorWithCode(error, 'EEXIST', 'ENOENT')) throw error;
  });
}

/** Splits the path below the allowed directory that contains it; undefined if there is none. Pure. */
export function parseHostDiskPath(path: string, allowed: readonly string[]): HostDiskPlace | undefined {
  const normal = posix.normalize(path);
  if (!posix.isAbsolute(path) || normal.endsWith('/')) return undefined;
  for (const root of allowed) {
    const names = posix.relative(root, normal).split('/');
    const file = names.at(-1) ?? '';
    if (names.every(isFileName)) return { root, directories: names.slice(0, -1), file };
  }
  return undefined;
}
