/**
 * Kills processes of pods that outlived a killed agent. They must end before their pods are started again, so that no two
 * processes do the same work. They are recognized by the token file in their environment.
 */
import { readdir, readFile } from 'node:fs/promises';
import { ACCESS_VARIABLES } from '#node/pods/program.ts';

/** Kills the programs whose token is in `dir`. Does not search if the directory is missing or empty. */
export async function killLeftoverPrograms(dir: string): Promise<void> {
  if ((await listDirectory(dir)).length === 0) return;
  const marker = `${ACCESS_VARIABLES.tokenFile}=${dir}/`;
  for (const name of await listDirectory('/proc')) {
    const pid = /^[1-9][0-9]*$/.test(name) ? Number(name) : undefined;
    if (pid === undefined || pid === process.pid) continue;
    const isLeftover = (await readEnvironment(name)).some((variable) => variable.startsWith(marker));
    if (isLeftover) kill(pid);
  }
}

async function listDirectory(dir: string): Promise<string[]> {
  try {
    return await readdir(dir);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/** Returns nothing for processes that have ended, and for those of other users. */
async function readEnvironment(pid: string): Promise<string[]> {
  try {
    return (await readFile(`/proc/${pid}/environ`, 'latin1')).split('\0');
  } catch {
    return [];
  }
}

/** Sends SIGKILL. The process runs no more code, even before it is reaped. */
function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
