/**
 * Processes of pods that outlived their agent, because it was killed: they end before others are started in their place,
 * or two would do the same work. Known by where they have their token from, which is set before they start.
 */
import { readdir, readFile } from 'node:fs/promises';
import { ACCESS_VARIABLES } from '#node/pods/program.ts';

/** `dir`: where the tokens of pods are. Nothing to do, and nothing looked at, where it is missing. */
export async function endLeftPrograms(dir: string): Promise<void> {
  if ((await namesIn(dir)).length === 0) return;
  const mark = `${ACCESS_VARIABLES.tokenFile}=${dir}/`;
  for (const name of await namesIn('/proc')) {
    const pid = /^[1-9][0-9]*$/.test(name) ? Number(name) : undefined;
    if (pid === undefined || pid === process.pid) continue;
    const isLeft = (await environmentOf(name)).some((variable) => variable.startsWith(mark));
    if (isLeft) kill(pid);
  }
}

async function namesIn(dir: string): Promise<string[]> {
  try {
    return await readdir(dir);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/** Nothing for what has ended meanwhile, and for what is somebody else's. */
async function environmentOf(pid: string): Promise<string[]> {
  try {
    return (await readFile(`/proc/${pid}/environ`, 'latin1')).split('\0');
  } catch {
    return [];
  }
}

/** What is killed this way does nothing any more, also before it is gone. */
function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
