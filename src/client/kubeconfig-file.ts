/** Reads a kubeconfig from a file of this machine. */
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { loadKubeconfig, type ClusterAccess } from '#client/kubeconfig.ts';
import { KubeconfigError } from '#client/kubeconfig-fields.ts';
import type { PluginHost } from '#client/credentials/plugin-process.ts';

const readFile = (path: string) => readFileSync(path, 'utf8');

/** Throws KubeconfigError. Refuses exec plugins without `plugins`. */
export function readKubeconfigFile(file: string, plugins?: PluginHost): ClusterAccess {
  let text: string;
  try {
    text = readFile(file);
  } catch (cause) {
    throw new KubeconfigError(`Cannot read the kubeconfig: ${(cause as Error).message}`, { cause });
  }
  return loadKubeconfig(text, { directory: dirname(resolve(file)), readFile, plugins });
}
