/**
 * Finds and kills processes that run in a directory or have it in their arguments, such as guests that outlive their
 * plane.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { pause } from '../pause.ts';

const EXIT_TIMEOUT_MS = 10_000;
const POLL_MS = 20;

export interface FoundProcess {
  readonly pid: number;
  readonly words: readonly string[];
  readonly cwd: string;
}

export function findProcessesIn(dir: string): FoundProcess[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((name) => {
      try {
        // Zombies have no arguments.
        const words = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0').slice(0, -1);
        const cwd = readlinkSync(`/proc/${name}/cwd`);
        const isBelow = [cwd, ...words].some((path) => path === dir || path.startsWith(`${dir}/`));
        return words.length > 0 && isBelow ? [{ pid: Number(name), words, cwd }] : [];
      } catch {
        return []; // The process has ended in the meantime.
      }
    });
}

/** Kills the processes and resolves when all of them have ended. */
export async function killProcessesIn(dir: string): Promise<void> {
  const deadline = performance.now() + EXIT_TIMEOUT_MS;
  for (let left = findProcessesIn(dir); left.length > 0; left = findProcessesIn(dir)) {
    for (const { pid } of left) kill(pid);
    if (performance.now() > deadline)
      throw new Error(`Cannot kill process ${left[0]!.pid}: ${left[0]!.words.join(' ')}`);
    await pause(POLL_MS);
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
