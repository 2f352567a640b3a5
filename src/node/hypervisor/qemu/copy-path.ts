/**
 * How a QEMU that runs already gets at a file whose path it cannot walk, because directories above are closed to its
 * user: from a directory that it has open (its working directory, those of its disks), up to where both ways meet and
 * down again. Where no such way is open to its user, the file gets a second name in its working directory.
 */
import { link, readdir, readlink, realpath, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { HypervisorError } from '../hypervisor.ts';
import { copyName } from './arguments/block-nodes.ts';
import type { User } from './process.ts';

/** A directory that QEMU has open, and how QEMU names it. */
export interface Anchor {
  readonly directory: string;
  readonly name: string;
}

export interface CopyPathOptions {
  readonly pid: number;
  readonly user: User;
  /** The working directory of QEMU. */
  readonly run: string;
}

/** May be repeated; forgetCopyPath undoes it. */
export async function copyPath(copyId: string, path: string, { pid, user, run }: CopyPathOptions): Promise<string> {
  const file = join(await realpath(dirname(path)), basename(path));
  for (const anchor of await anchorsOf(pid)) {
    if (await isOpen(directoriesBetween(anchor.directory, file), user)) {
      return `${anchor.name}/${relative(anchor.directory, file)}`;
    }
  }
  await forgetCopyPath(copyId, run);
  await link(file, join(run, copyName(copyId))).catch((cause: unknown) => {
    throw new HypervisorError(`the user of guests cannot reach "${path}"`, { cause });
  });
  return copyName(copyId);
}

/** Fine where there is nothing to forget. */
export async function forgetCopyPath(copyId: string, run: string): Promise<void> {
  await rm(join(run, copyName(copyId)), { force: true });
}

/** All that are passed on the way from the one to the other, which are absolute and without links. */
export function directoriesBetween(directory: string, file: string): string[] {
  const passed = [directory];
  const steps = relative(directory, dirname(file)).split('/');
  for (const step of steps.filter((each) => each !== '')) passed.push(resolve(passed.at(-1) ?? '/', step));
  return passed;
}

async function anchorsOf(pid: number): Promise<Anchor[]> {
  const anchors = [{ directory: await readlink(`/proc/${pid}/cwd`), name: '.' }];
  for (const fd of await readdir(`/proc/${pid}/fd`)) {
    // What it has open comes and goes while we look.
    const stats = await stat(`/proc/${pid}/fd/${fd}`).catch(() => undefined);
    if (stats?.isDirectory() !== true) continue;
    anchors.push({ directory: await readlink(`/proc/${pid}/fd/${fd}`), name: `/proc/self/fd/${fd}` });
  }
  return anchors;
}

async function isOpen(directories: readonly string[], user: User): Promise<boolean> {
  for (const directory of directories) {
    const stats = await stat(directory).catch(() => undefined);
    if (stats === undefined || !maySearch(stats, user)) return false;
  }
  return true;
}

/** As the kernel decides: the first that applies counts, also where a later one would allow more. */
export function maySearch(stats: { uid: number; gid: number; mode: number }, user: User): boolean {
  if (stats.uid === user.uid) return (stats.mode & 0o100) !== 0;
  if (stats.gid === user.gid) return (stats.mode & 0o010) !== 0;
  return (stats.mode & 0o001) !== 0;
}
