/**
 * Temporary directories that tell by their name which process they are of: whoever finds one later knows whether it was
 * left behind. They go together with every process that works in them.
 */
import { lstat, mkdtemp, readdir, readlink, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';

/** Processes that are being started are found by another look. */
const MAX_LOOKS = 10;

/** A new one of this process, below `parent`. */
export async function makeOwnedDir(parent: string, prefix: string): Promise<string> {
  return await mkdtemp(join(parent, `${prefix}${process.pid}-`));
}

/** The process that a directory of this name is of; undefined where it is none of these. */
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

/** Those below `parent` whose process is gone, as far as they are this user's. */
export async function abandonedDirs(parent: string, prefix: string): Promise<string[]> {
  const names = await readdir(parent).catch(() => []);
  const gone = names.filter((name) => {
    const owner = ownerOf(name, prefix);
    return owner !== undefined && !isAlive(owner);
  });
  const found = await Promise.all(gone.map(async (name) => ((await isOurs(join(parent, name))) ? [name] : [])));
  return found.flat().map((name) => join(parent, name));
}

async function isOurs(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined);
  return found?.isDirectory() === true && found.uid === process.getuid?.();
}

/** Ends every process that works in the directory, then removes it. A repeated call does nothing. */
export async function removeWithProcesses(dir: string): Promise<void> {
  // A process that ends may have just begun another one there.
  for (let look = 0; look < MAX_LOOKS && (await endProcessesIn(dir)) > 0; look++);
  await rm(dir, { recursive: true, force: true, maxRetries: 5 });
}

/** How many there were. */
async function endProcessesIn(dir: string): Promise<number> {
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
      // It ended just now.
    }
  }
  return count;
}
