/**
 * How a QEMU that runs already gets at a file whose path it cannot walk, because directories above are closed to its
 * user: from a directory that it has open (the root, its working directory, those of its disks), up to where both ways
 * meet and down again. Where no such way is open to its user, the file gets a second name in its working directory.
 */
import { link, readdir, readlink, realpath, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { HypervisorError } from '../hypervisor.ts';
import type { User } from './process.ts';

/** A directory that QEMU has open, and how QEMU names it. */
export interface Anchor {
  readonly directory: string;
  readonly name: string;
}

interface Reacher {
  readonly pid: number;
  readonly user: User;
  /** The working directory of QEMU. */
  readonly run: string;
}

export interface FileReach {
  /** The path as QEMU can open it. `name` is the second name, where one is needed. May be repeated. */
  pathOf(name: string, path: string): Promise<string>;
  /** Takes a second name away again: QEMU needs it no longer once the file is open. Fine where there is none. */
  forget(name: string): Promise<void>;
}

/** Without a user QEMU runs as we do and gets paths as they are. */
export function fileReach({ user, ...process }: Omit<Reacher, 'user'> & { user: User | undefined }): FileReach {
  return {
    pathOf: async (name, path) => (user === undefined ? path : reachFile(name, path, { ...process, user })),
    forget: (name) => forgetFile(name, process.run),
  };
}

async function reachFile(name: string, path: string, { pid, user, run }: Reacher): Promise<string> {
  const file = join(await realpath(dirname(path)), basename(path));
  for (const anchor of await anchorsOf(pid)) {
    if (await isOpen(directoriesBetween(anchor.directory, file), user)) {
      return `${anchor.name}/${relative(anchor.directory, file)}`;
    }
  }
  await forgetFile(name, run);
  await link(file, join(run, name)).catch((cause: unknown) => {
    throw new HypervisorError(`the user of guests cannot reach "${path}"`, { cause });
  });
  return name;
}

async function forgetFile(name: string, run: string): Promise<void> {
  await rm(join(run, name), { force: true });
}

/** All that are passed on the way from the one to the other, which are absolute and without links. */
export function directoriesBetween(directory: string, file: string): string[] {
  const passed = [directory];
  const steps = relative(directory, dirname(file)).split('/');
  for (const step of steps.filter((each) => each !== '')) passed.push(resolve(passed.at(-1) ?? '/', step));
  return passed;
}

async function anchorsOf(pid: number): Promise<Anchor[]> {
  const anchors = [
    { directory: '/', name: '' },
    { directory: await readlink(`/proc/${pid}/cwd`), name: '.' },
  ];
  for (const fd of await readdir(`/proc/${pid}/fd`)) {
    // What it has open comes and goes while we look.
    const stats = await stat(`/proc/${pid}/fd/${fd}`).catch(() => undefined);
    if (stats?.isDirectory() !== true) continue;
    anchors.push({ directory: await readlink(`/proc/${pid}/fd/${fd}`), name: `/proc/self/fd/${fd}` });
  }
  return anchors;
}

/** Whether the user may pass all of them. */
export async function isOpen(directories: readonly string[], user: User): Promise<boolean> {
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
