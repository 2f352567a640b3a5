/** Reads a kubeconfig from a file of this machine. */
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { KubeconfigError, loadKubeconfig, type ClusterAccess } from '#client/kubeconfig.ts';

const readFile = (path: string) => readFileSync(path, 'utf8');

/** Throws KubeconfigError. */
export function readKubeconfigFile(file: string): ClusterAccess {
  let text: string;
  try {
    text = readFile(file);
  } catch (cause) {
    throw new KubeconfigError(`Cannot read the kubeconfig: ${(cause as Error).message}`, { cause });
  }
  return loadKubeconfig(text, { directory: dirname(resolve(file)), readFile });
}
