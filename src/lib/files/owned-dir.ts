/**
 * Temporary directories whose name contains the pid of their owner, so that later processes can recognise and remove
 * abandoned ones. A directory is removed together with all processes that run in it.
 */
import { lstat, mkdtemp, readdir, readlink, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';

/** Rounds of ending processes, because a process can start another one while it is being ended. */
const MAX_ROUNDS = 10;

/** Creates a directory below `parent` that belongs to this process. */
export async function makeOwnedDir(parent: string, prefix: string): Promise<string> {
  return await mkdtemp(join(parent, `${prefix}${process.pid}-`));
}

/** Returns the pid of the owner of a directory with this name, or undefined if the name does not have this form. */
export function ownerOf(name: string, prefix: string): number | undefined {
  if (!name.startsWith(prefix)) return undefined;
  const [, pid] = /^(\d{1,10})-[A-Za-z0-9]{6}$/.exec(name.slice(prefix.length)) ?? [];
  return pid === undefined ? undefined : Number(pid);
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Returns the directories of this user below `parent` whose owner no longer runs. */
export async function findAbandonedDirs(parent: string, prefix: string): Promise<string[]> {
  const names = await readdir(parent).catch(() => []);
  const abandoned = names.filter((name) => {
    const owner = ownerOf(name, prefix);
    return owner !== undefined && !isAlive(owner);
  });
  const found = await Promise.all(abandoned.map(async (name) => ((await isOwnDir(join(parent, name))) ? [name] : [])));
  return found.flat().map((name) => join(parent, name));
}

async function isOwnDir(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined);
  return found?.isDirectory() === true && found.uid === process.getuid?.();
}

/** Ends every process whose working directory is in the directory, then removes it. A repeated call does nothing. */
export async function removeWithProcesses(dir: string): Promise<void> {
  for (let round = 0; round < MAX_ROUNDS && (await killProcessesIn(dir)) > 0; round++);
  await rm(dir, { recursive: true, force: true, maxRetries: 5 });
}

/** Kills the processes and returns their number. */
async function killProcessesIn(dir: string): Promise<number> {
  const real = await realpath(dir).catch(() => dir);
  let count = 0;
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue;
    const cwd = await readlink(`/proc/${name}/cwd`).catch(() => '');
    if (cwd !== real && !cwd.startsWith(`${real}/`)) continue;
    count++;
    try {
      process.kill(Number(name), 'SIGKILL');
    } catch {
      // The process has ended in the meantime.
    }
  }
  return count;
}
