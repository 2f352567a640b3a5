/**
 * What a node has on disk: a directory with its own access and certificate. How a server lets it join: embedded/admit-node.ts.
 *
 *   <data-dir>/nodes/<name>/kubeconfig      as system:node:<name>
 *                          /pki/            ca.crt, endpoint.crt, endpoint.key
 *                          /domains/        one directory for each guest
 *                          /volumes/        local volumes
 *                          /pods/           the tokens of programs that pods run here
 *                          /host.sock       the host API, for whoever may open it
 *                          /host-images/    the files that VMs of the host API may have
 *                          /host-vms/       what was sent of each of them
 *                          /host-disks/     the only files that hostDisk volumes may name, here and in shared/
 *   <data-dir>/shared/volumes/              volumes that every node of this machine reaches
 *   <data-dir>/host-operator/               ca.crt, client.crt, client.key: who may do everything on every node's host API
 *
 * Guests run as somebody else: below the data directory, which only we may enter, they pass but cannot look around.
 */
import { chmod, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

const PASSABLE = 0o711;

export interface EndpointCertificate {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export const nodeDirOf = (dataDir: string, name: string) => join(dataDir, 'nodes', name);
export const sharedDirOf = (dataDir: string) => join(dataDir, 'shared');

export async function ensureNodeDirs(nodeDir: string, sharedDir: string): Promise<void> {
  for (const dir of [nodeDir, sharedDir]) {
    await passable(dir);
    await passable(join(dir, 'host-disks'));
  }
}

export async function readEndpointCertificate(nodeDir: string): Promise<EndpointCertificate> {
  const read = (name: string) => readFile(join(nodeDir, 'pki', name), 'utf8');
  return { ca: await read('ca.crt'), cert: await read('endpoint.crt'), key: await read('endpoint.key') };
}

export async function passable(dir: string): Promise<void> {
  await mkdir(dir, { recursive: true });
  await chmod(dir, PASSABLE);
}
