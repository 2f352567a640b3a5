/** Whether a plane runs in a data directory, and how to reach it. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isAlive } from '#lib/owned-dir.ts';

/** The kubeconfig of the plane that runs there; undefined where none does. */
export function runningIn(dataDir: string): string | undefined {
  const kubeconfig = join(dataDir, 'kubeconfig');
  try {
    const pid = Number(readFileSync(join(dataDir, 'server.pid'), 'utf8').trim());
    return pid > 0 && isAlive(pid) && existsSync(kubeconfig) ? kubeconfig : undefined;
  } catch {
    return undefined;
  }
}
