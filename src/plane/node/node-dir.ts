/**
 * The directory of a node, with its kubeconfig and certificates. embedded/admit-node.ts fills it for the nodes of a
 * server.
 *
 *   <data-dir>/nodes/<name>/kubeconfig      as system:node:<name>
 *                          /pki/            ca.crt, endpoint.crt, endpoint.key
 *                          /domains/        one directory per guest
 *                          /volumes/        local volumes
 *                          /pods/           tokens of the programs that pods run here
 *                          /host.sock       host API, for users who may open it
 *                          /host-images/    files that VMs of the host API may use
 *                          /host-vms/       definitions of these VMs as they were sent
 *                          /host-disks/     the only files that hostDisk volumes may name, by namespace, here and in shared/
 *   <data-dir>/shared/volumes/              volumes that all nodes of this machine share
 *   <data-dir>/host-operator/               ca.crt, client.crt, client.key: full access to the host API of all nodes
 *
 * Guests run as another user: below the data directory, which only this user may enter, they can pass through
 * directories but not list them.
 */
import { chmod, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

const PASSABLE = 0o711;

interface EndpointCertificate {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export const nodeDirOf = (dataDir: string, name: string) => join(dataDir, 'nodes', name);
export const sharedDirOf = (dataDir: string) => join(dataDir, 'shared');

export async function ensureNodeDirs(nodeDir: string, sharedDir: string): Promise<void> {
  for (const dir of [nodeDir, sharedDir]) {
    await makePassable(dir);
    await makePassable(join(dir, 'host-disks'));
  }
}

export async function readEndpointCertificate(nodeDir: string): Promise<EndpointCertificate> {
  const read = (name: string) => readFile(join(nodeDir, 'pki', name), 'utf8');
  return { ca: await read('ca.crt'), cert: await read('endpoint.crt'), key: await read('endpoint.key') };
}

export async function makePassable(dir: string): Promise<void> {
  await mkdir(dir, { recursive: true });
  await chmod(dir, PASSABLE);
}
