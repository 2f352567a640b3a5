/** Finds and kills the processes that work in a directory: node agents, guests and their TPMs. */
import { readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

/** Returns the processes whose working directory is the directory or below it, each with its executable. */
export function processesBelow(dir: string): { pid: number; command: string }[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const cwd = readlinkSync(join('/proc', pid, 'cwd'));
        const command = readlinkSync(join('/proc', pid, 'exe'));
        return cwd.startsWith(dir) ? [{ pid: Number(pid), command }] : [];
      } catch {
        return []; // The process ended meanwhile, or has no executable.
      }
    });
}

/** Kills the processes that work in the directory or below it. */
export function killProcessesBelow(dir: string): void {
  for (const { pid } of processesBelow(dir)) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // The process ended meanwhile.
    }
  }
}
