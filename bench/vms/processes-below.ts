/** Processes that work in a folder or were told of it, such as guests that outlive their plane; and their end. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { pause } from '../pause.ts';

const GONE_TIMEOUT_MS = 10_000;
const LOOK_EVERY_MS = 20;

export interface FoundProcess {
  readonly pid: number;
  readonly words: readonly string[];
  readonly cwd: string;
}

export function processesBelow(dir: string): FoundProcess[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((name) => {
      try {
        // The dead that nobody has buried have no words.
        const words = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0').slice(0, -1);
        const cwd = readlinkSync(`/proc/${name}/cwd`);
        const below = [cwd, ...words].some((path) => path === dir || path.startsWith(`${dir}/`));
        return words.length > 0 && below ? [{ pid: Number(name), words, cwd }] : [];
      } catch {
        return []; // It ended meanwhile.
      }
    });
}

/** Resolves when all are gone. */
export async function killBelow(dir: string): Promise<void> {
  const deadline = performance.now() + GONE_TIMEOUT_MS;
  for (let left = processesBelow(dir); left.length > 0; left = processesBelow(dir)) {
    for (const { pid } of left) kill(pid);
    if (performance.now() > deadline)
      throw new Error(`Cannot end process ${left[0]!.pid}: ${left[0]!.words.join(' ')}`);
    await pause(LOOK_EVERY_MS);
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
