/** How the server lets nodes of its own machine join, and those who ask them: with certificates of the engine's authority. */
import { mkdir } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readKubeconfigFile } from '#client/kubeconfig-file.ts';
import { systemClock } from '#lib/clock.ts';
import { issue, readAuthority } from '#lib/pki/authority.ts';
import { HOST_OPERATOR } from '#api/host-api.ts';
import type { Pki } from '#engine/auth/certificates.ts';
import { NODES, NODE_USER_PREFIX } from '#engine/auth/groups.ts';
import { writeKubeconfig } from '#lib/kubeconfig-file.ts';
import { writePrivateFile } from '#lib/private-file.ts';
import { ensureNodeDirs, nodeDirOf, passable, sharedDirOf } from '#plane/node-dir.ts';

const DAYS = 365;
const PRIVATE = 0o700;

/** Makes the directory and hands the node what it needs to join. Done again, it renews the certificates. */
export async function admitNode(dataDir: string, name: string, { pki, url }: { pki: Pki; url: string }): Promise<void> {
  const dir = nodeDirOf(dataDir, name);
  await passable(join(dataDir, 'nodes'));
  await ensureNodeDirs(dir, sharedDirOf(dataDir));
  const user = `${NODE_USER_PREFIX}${name}`;
  const endpoint = pki.issueServerCertificate({ name, hosts: [name, 'localhost', '127.0.0.1', '::1'], days: DAYS });
  const pkiDir = join(dir, 'pki');
  await mkdir(pkiDir, { recursive: true, mode: PRIVATE });
  await writePrivateFile(join(pkiDir, 'ca.crt'), pki.caPem);
  await writePrivateFile(join(pkiDir, 'endpoint.key'), endpoint.keyPem);
  await writePrivateFile(join(pkiDir, 'endpoint.crt'), endpoint.certPem);
  // At the end: a node that runs looks at it, and takes up the rest when it has changed.
  const { certPem, keyPem } = pki.issueClientCertificate({ user, groups: [NODES], days: DAYS });
  await writeKubeconfig({ file: join(dir, 'kubeconfig'), server: url, caPem: pki.caPem, user, certPem, keyPem });
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

/** A kubeconfig for a node of another process: what a cluster would sign, from the engine's own directory. */
export async function issueNodeKubeconfig(engineDir: string, name: string, out: string): Promise<void> {
  const read = (file: string) => readFileSync(join(engineDir, file), 'utf8');
  const { server } = readKubeconfigFile(join(engineDir, 'kubeconfig'));
  const caPem = read('pki/ca.crt');
  const authority = readAuthority({ commonName: 'selfsame-ca' }, caPem, read('pki/ca.key'));
  const user = `${NODE_USER_PREFIX}${name}`;
  const { certPem, keyPem } = issue(authority, {
    subject: { commonName: user, organizations: [NODES] },
    purpose: { kind: 'client' },
    nowMs: systemClock.now(),
    lifetimeMs: DAYS * 24 * 60 * 60 * 1000,
  });
  await mkdir(dirname(out), { recursive: true });
  await writeKubeconfig({ file: out, server, caPem, user, certPem, keyPem });
}
