/** Issues certificates of the engine's authority to the nodes of this machine and to clients of their host API. */
import { mkdir } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readKubeconfigFile } from '#client/kubeconfig-file.ts';
import { systemClock } from '#lib/clock.ts';
import { issue, readAuthority } from '#lib/pki/authority.ts';
import { HOST_OPERATOR } from '#api/host-api.ts';
import type { Pki } from '#engine/auth/certificates.ts';
import { NODES, NODE_USER_PREFIX } from '#engine/auth/groups.ts';
import { writeKubeconfig } from '#lib/files/kubeconfig-file.ts';
import { writePrivateFile } from '#lib/files/private-file.ts';
import { ensureNodeDirs, nodeDirOf, makePassable, sharedDirOf } from '#plane/node/node-dir.ts';

const DAYS = 365;
const PRIVATE = 0o700;

/** Creates the directory of a node with its kubeconfig and certificates. A repeated call renews the certificates. */
export async function admitNode(dataDir: string, name: string, { pki, url }: { pki: Pki; url: string }): Promise<void> {
  const dir = nodeDirOf(dataDir, name);
  await makePassable(join(dataDir, 'nodes'));
  await ensureNodeDirs(dir, sharedDirOf(dataDir));
  const user = `${NODE_USER_PREFIX}${name}`;
  const endpoint = pki.issueServerCertificate({ name, hosts: [name, 'localhost', '127.0.0.1', '::1'], days: DAYS });
  const pkiDir = join(dir, 'pki');
  await mkdir(pkiDir, { recursive: true, mode: PRIVATE });
  await writePrivateFile(join(pkiDir, 'ca.crt'), pki.caPem);
  await writePrivateFile(join(pkiDir, 'endpoint.key'), endpoint.keyPem);
  await writePrivateFile(join(pkiDir, 'endpoint.crt'), endpoint.certPem);
  // Written last: a running node watches this file and reads the others when it changes.
  const { certPem, keyPem } = pki.issueClientCertificate({ user, groups: [NODES], days: DAYS });
  await writeKubeconfig({ file: join(dir, 'kubeconfig'), server: url, caPem: pki.caPem, user, certPem, keyPem });
}

/** Issues a certificate for scripts and older managers that use the host API over HTTPS. A repeated call renews it. */
export async function admitHostOperator(dataDir: string, pki: Pki): Promise<void> {
  const dir = join(dataDir, 'host-operator');
  await mkdir(dir, { recursive: true, mode: PRIVATE });
  const { certPem, keyPem } = pki.issueClientCertificate({ user: HOST_OPERATOR, groups: [], days: DAYS });
  await writePrivateFile(join(dir, 'ca.crt'), pki.caPem);
  await writePrivateFile(join(dir, 'client.key'), keyPem);
  await writePrivateFile(join(dir, 'client.crt'), certPem);
}

/**
 * Issues a kubeconfig for a separate node process from the data directory of the engine, in place of `selfsame join`.
 */
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
