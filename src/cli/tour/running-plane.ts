/** Finds the running plane of a data directory. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isAlive } from '#lib/files/owned-dir.ts';

/** Returns the kubeconfig of the running plane, or undefined. */
export function findRunningKubeconfig(dataDir: string): string | undefined {
  const kubeconfig = join(dataDir, 'kubeconfig');
  try {
    const pid = Number(readFileSync(join(dataDir, 'server.pid'), 'utf8').trim());
    return pid > 0 && isAlive(pid) && existsSync(kubeconfig) ? kubeconfig : undefined;
  } catch {
    return undefined;
  }
}
