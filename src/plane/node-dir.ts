/**
 * What a node has on disk, and how the server lets it join: a directory with its own access and certificate.
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
import { HOST_OPERATOR } from '#api/host-api.ts';
import type { Pki } from '#engine/auth/certificates.ts';
import { NODES, NODE_USER_PREFIX } from '#engine/auth/groups.ts';
import { writeKubeconfig } from '#lib/kubeconfig-file.ts';
import { writePrivateFile } from '#lib/private-file.ts';

const DAYS = 365;
const PRIVATE = 0o700;
const PASSABLE = 0o711;

export interface EndpointCertificate {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export const nodeDirOf = (dataDir: string, name: string) => join(dataDir, 'nodes', name);
export const sharedDirOf = (dataDir: string) => join(dataDir, 'shared');

/** Makes the directory and hands the node what it needs to join. Done again, it renews the certificates. */
export async function admitNode(dataDir: string, name: string, { pki, url }: { pki: Pki; url: string }): Promise<void> {
  const dir = nodeDirOf(dataDir, name);
  await passable(join(dataDir, 'nodes'));
  await ensureNodeDirs(dir, sharedDirOf(dataDir));
  const user = `${NODE_USER_PREFIX}${name}`;
  const { certPem, keyPem } = pki.issueClientCertificate({ user, groups: [NODES], days: DAYS });
  await writeKubeconfig({ file: join(dir, 'kubeconfig'), server: url, caPem: pki.caPem, user, certPem, keyPem });
  const endpoint = pki.issueServerCertificate({ name, hosts: [name, 'localhost', '127.0.0.1', '::1'], days: DAYS });
  const pkiDir = join(dir, 'pki');
  await mkdir(pkiDir, { recursive: true, mode: PRIVATE });
  await writePrivateFile(join(pkiDir, 'ca.crt'), pki.caPem);
  await writePrivateFile(join(pkiDir, 'endpoint.key'), endpoint.keyPem);
  await writePrivateFile(join(pkiDir, 'endpoint.crt'), endpoint.certPem);
}

/** For scripts and managers of old that ask nodes over HTTPS. Done again, it renews the certificate. */
export async function admitHostOperator(dataDir: string, pki: Pki): Promise<void> {
  const dir = join(dataDir, 'host-operator');
  await mkdir(dir, { recursive: true, mode: PRIVATE });
  const { certPem, keyPem } = pki.issueClientCertificate({ user: HOST_OPERATOR, groups: [], days: DAYS });
  await writePrivateFile(join(dir, 'ca.crt'), pki.caPem);
  await writePrivateFile(join(dir, 'client.key'), keyPem);
  await writePrivateFile(join(dir, 'client.crt'), certPem);
}

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

async function passable(dir: string): Promise<void> {
  await mkdir(dir, { recursive: true });
  await chmod(dir, PASSABLE);
}
