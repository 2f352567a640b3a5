/**
 * Gives a running QEMU access to a file whose path its user cannot walk. The path starts at a directory that QEMU has
 * open (the root, its working directory, those of its disks). If its user cannot walk from any of them, the file is
 * linked into QEMU's working directory.
 */
import { link, readdir, readlink, realpath, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import type { User } from '#node/hypervisor/qemu/process/process.ts';

/** A directory that QEMU has open, and the name by which QEMU can open it. */
interface Anchor {
  readonly directory: string;
  readonly name: string;
}

interface QemuProcess {
  readonly pid: number;
  readonly user: User;
  /** The working directory of QEMU. */
  readonly run: string;
}

export interface FileAccess {
  /**
   * Returns a path by which QEMU can open the file. `name` is the name of the link, if one is needed. May be repeated.
   */
  pathOf(name: string, path: string): Promise<string>;
  /** Removes the link, which QEMU does not need once the file is open. Does nothing if there is none. */
  release(name: string): Promise<void>;
}

/** Creates the access for one QEMU. Without a user, QEMU runs as our own user and gets paths unchanged. */
export function createFileAccess({
  user,
  ...process
}: Omit<QemuProcess, 'user'> & { user: User | undefined }): FileAccess {
  return {
    pathOf: async (name, path) => (user === undefined ? path : findReachablePath(name, path, { ...process, user })),
    release: (name) => removeLink(name, process.run),
  };
}

async function findReachablePath(name: string, path: string, { pid, user, run }: QemuProcess): Promise<string> {
  const file = join(await realpath(dirname(path)), basename(path));
  for (const anchor of await readAnchors(pid)) {
    if (await canSearchAll(directoriesBetween(anchor.directory, file), user)) {
      return `${anchor.name}/${relative(anchor.directory, file)}`;
    }
  }
  await removeLink(name, run);
  await link(file, join(run, name)).catch((cause: unknown) => {
    throw new HypervisorError(`the guests' user cannot access "${path}"`, { cause });
  });
  return name;
}

async function removeLink(name: string, run: string): Promise<void> {
  await rm(join(run, name), { force: true });
}

/** Returns the directories to walk from one path to the other; both are absolute and free of links. */
export function directoriesBetween(directory: string, file: string): string[] {
  const passed = [directory];
  const steps = relative(directory, dirname(file)).split('/');
  for (const step of steps.filter((each) => each !== '')) passed.push(resolve(passed.at(-1) ?? '/', step));
  return passed;
}

async function readAnchors(pid: number): Promise<Anchor[]> {
  const anchors = [
    { directory: '/', name: '' },
    { directory: await readlink(`/proc/${pid}/cwd`), name: '.' },
  ];
  for (const fd of await readdir(`/proc/${pid}/fd`)) {
    // QEMU may close descriptors meanwhile.
    const stats = await stat(`/proc/${pid}/fd/${fd}`).catch(() => undefined);
    if (stats?.isDirectory() !== true) continue;
    anchors.push({ directory: await readlink(`/proc/${pid}/fd/${fd}`), name: `/proc/self/fd/${fd}` });
  }
  return anchors;
}

/** Reports whether the user may search all of the directories. */
export async function canSearchAll(directories: readonly string[], user: User): Promise<boolean> {
  for (const directory of directories) {
    const stats = await stat(directory).catch(() => undefined);
    if (stats === undefined || !maySearch(stats, user)) return false;
  }
  return true;
}

/**
 * Reports whether the user may search a directory. As in the kernel, the first class that applies decides: owner,
 * group, others.
 */
export function maySearch(stats: { uid: number; gid: number; mode: number }, user: User): boolean {
  if (stats.uid === user.uid) return (stats.mode & 0o100) !== 0;
  if (stats.gid === user.gid) return (stats.mode & 0o010) !== 0;
  return (stats.mode & 0o001) !== 0;
}
