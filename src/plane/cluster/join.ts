/**
 * `selfsame join`: with the rights of an administrator, a kubeconfig for one of our processes that has only its own. A
 * controllers process gets a token of its account, which it renews by itself; a node the certificate that kubelets have.
 */
import { basename, dirname, join as joinPath } from 'node:path';
import { mkdir } from 'node:fs/promises';
import { delay } from '#client/abort.ts';
import type { Client } from '#client/client.ts';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { isApiError } from '#kube/api-error.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';
import { timestamp, type Clock } from '#lib/clock.ts';
import { kubeconfigText } from '#lib/kubeconfig-file.ts';
import { makeRequest, newKeyPair, privateKeyPem } from '#lib/pki/x509.ts';
import { writePrivateFile } from '#lib/private-file.ts';
import { CONTROLLERS_ACCOUNT } from '#operator/objects/cluster.ts';
import { requestToken } from '#plane/cluster/account-clients.ts';
import { OWN_TOKEN_SECONDS } from '#plane/cluster/own-token.ts';

interface SigningRequest extends KubeObject {
  spec: { request: string; signerName: string; usages: string[] };
  status?: { certificate?: string; conditions?: Record<string, unknown>[] };
}

const SIGNING_REQUESTS: ResourceType<SigningRequest> = {
  group: 'certificates.k8s.io',
  version: 'v1',
  kind: 'CertificateSigningRequest',
  plural: 'certificatesigningrequests',
  namespaced: false,
};
const KUBELET_SIGNER = 'kubernetes.io/kube-apiserver-client-kubelet';
const NODES_GROUP = 'system:nodes';
const SIGN_MS = 60_000;
const LOOK_MS = 500;
const APPROVE_TRIES = 5;

export class JoinError extends Error {
  override name = 'JoinError';
}

export interface JoinParts {
  /** As an administrator. */
  readonly client: Client;
  readonly access: ClusterAccess;
  /** The kubeconfig that is written. */
  readonly out: string;
  readonly clock: Clock;
}

export async function joinControllers({ client, access, out, clock }: JoinParts): Promise<void> {
  const { token } = await requestToken(client, CONTROLLERS_ACCOUNT, { seconds: OWN_TOKEN_SECONDS, clock }).catch(
    (error: unknown) => {
      if (!isApiError(error, 'NotFound')) throw error;
      throw new JoinError(
        `Cannot join: there is no account ${CONTROLLERS_ACCOUNT}; run selfsame install --apply first`,
      );
    },
  );
  await mkdir(dirname(out), { recursive: true });
  const tokenFile = `${basename(out)}.token`;
  await writePrivateFile(joinPath(dirname(out), tokenFile), token);
  const { server } = access;
  await writePrivateFile(out, kubeconfigText({ server, caPem: caOf(access), user: CONTROLLERS_ACCOUNT, tokenFile }));
}

export async function joinNode(name: string, { client, access, out, clock }: JoinParts): Promise<void> {
  const user = `system:node:${name}`;
  const keys = newKeyPair();
  const certPem = await signed(
    makeRequest({ commonName: user, organizations: [NODES_GROUP] }, keys),
    name,
    client,
    clock,
  );
  await mkdir(dirname(out), { recursive: true });
  const proof = { certPem, keyPem: privateKeyPem(keys.privateKey) };
  await writePrivateFile(out, kubeconfigText({ server: access.server, caPem: caOf(access), user, ...proof }));
}

function caOf({ certificateAuthority }: ClusterAccess): string {
  if (certificateAuthority !== undefined) return certificateAuthority;
  throw new JoinError('Cannot join: the kubeconfig has no certificate-authority; expected one to hand on');
}

async function signed(request: string, node: string, client: Client, clock: Clock): Promise<string> {
  const made = await ask(request, node, client);
  const name = { name: made.metadata.name };
  try {
    const approval = {
      type: 'Approved',
      status: 'True',
      reason: 'SelfsameJoin',
      message: `selfsame join let node ${node} in`,
      lastUpdateTime: timestamp(clock.now()),
    };
    await approve(client, made, approval);
    const late = clock.elapsed() + SIGN_MS;
    for (;;) {
      const { status: now } = await client.get(SIGNING_REQUESTS, name);
      if (now?.certificate) return Buffer.from(now.certificate, 'base64').toString('utf8');
      const failed = now?.conditions?.find(({ type }) => type === 'Failed' || type === 'Denied');
      if (failed !== undefined)
        throw new JoinError(`Cannot join: the cluster refused to sign: ${String(failed['message'])}`);
      if (clock.elapsed() > late) {
        const who = 'is a controller manager with --cluster-signing-cert-file running?';
        throw new JoinError(
          `Cannot join: nobody signed the certificate of node ${node} in ${SIGN_MS / 1000} s; ${who}`,
        );
      }
      await delay(clock, LOOK_MS, new AbortController());
    }
  } finally {
    await client.delete(SIGNING_REQUESTS, name).catch(() => undefined);
  }
}

/** A cluster's own controllers may approve it at the same time, for who may let nodes in. */
async function approve(client: Client, made: Stored<SigningRequest>, approval: Record<string, unknown>): Promise<void> {
  for (let tries = 1, request = made; ; tries++) {
    if (request.status?.conditions?.some(({ type }) => type === 'Approved') === true) return;
    try {
      const status = { ...request.status, conditions: [...(request.status?.conditions ?? []), approval] };
      await client.update(SIGNING_REQUESTS, { ...request, status }, { subresource: 'approval' });
      return;
    } catch (error) {
      if (!isApiError(error, 'Conflict') || tries === APPROVE_TRIES) throw error;
      request = await client.get(SIGNING_REQUESTS, { name: made.metadata.name });
    }
  }
}

async function ask(request: string, node: string, client: Client): Promise<Stored<SigningRequest>> {
  const usages = ['digital signature', 'client auth'];
  const spec = { request: Buffer.from(request, 'utf8').toString('base64'), signerName: KUBELET_SIGNER, usages };
  const metadata = { generateName: `selfsame-node-${node}-` };
  const object = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest', metadata, spec };
  try {
    return await client.create(SIGNING_REQUESTS, object);
  } catch (error) {
    if (!isApiError(error, 'NotFound')) throw error;
    const how = 'where it is the engine of selfsame, give its directory with --engine-data-dir';
    throw new JoinError(`Cannot join: this API server signs no certificates for nodes (certificates.k8s.io); ${how}`);
  }
}
