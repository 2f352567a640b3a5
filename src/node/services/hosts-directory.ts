/**
 * The directory of hosts files that dnsmasq reads with --hostsdir. dnsmasq (2.90) notices new, replaced and removed files by
 * itself, forgets what a removed file said, and ignores files whose name begins with a dot. Several agents of one machine
 * may write the same directory: all of them write the same content, and each write is atomic.
 */
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pid } from 'node:process';

const DIR_MODE = 0o755;
const FILE_MODE = 0o644;
/** A temporary file that is older was left by a process that was killed. */
const STALE_MS = 60_000;

/** Makes the directory contain exactly these files. Files with the right content are not touched. */
export async function writeHostsFiles(dir: string, files: ReadonlyMap<string, string>, nowMs: number): Promise<void> {
  await mkdir(dir, { recursive: true, mode: DIR_MODE });
  for (const name of await readdir(dir)) {
    if (name.startsWith('.') ? await isStale(join(dir, name), nowMs) : !files.has(name)) {
      await rm(join(dir, name), { force: true });
    }
  }
  for (const [name, text] of files) {
    const path = join(dir, name);
    if ((await readIfExists(path)) === text) continue;
    const temporary = join(dir, `.${name}.${pid}`);
    await writeFile(temporary, text, { mode: FILE_MODE });
    await rename(temporary, path);
  }
}

async function readIfExists(path: string): Promise<string | undefined> {
  return await readFile(path, 'utf8').catch(ignoreMissing);
}

async function isStale(path: string, nowMs: number): Promise<boolean> {
  const found = await stat(path).catch(ignoreMissing);
  return found !== undefined && nowMs - found.mtimeMs > STALE_MS;
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}
