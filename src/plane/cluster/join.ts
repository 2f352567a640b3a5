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
import { NODES } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { userOfNode } from '#kube/node-user.ts';
import { timestamp, type Clock } from '#lib/clock.ts';
import { kubeconfigText } from '#lib/kubeconfig-file.ts';
import { newKeyPair, privateKeyPem, type KeyPair } from '#lib/pki/x509.ts';
import { writePrivateFile } from '#lib/private-file.ts';
import { HYPERVISOR_LABEL } from '#node/registration/node-object.ts';
import { CONTROLLERS_ACCOUNT } from '#operator/objects/cluster.ts';
import { requestToken } from '#plane/cluster/account-clients.ts';
import { OWN_TOKEN_SECONDS } from '#plane/cluster/own-token.ts';
import {
  askToSign,
  NothingSigned,
  outcomeOf,
  SIGNING_REQUESTS,
  type SigningRequest,
} from '#plane/cluster/signing-requests.ts';

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
  const place = placeOf(access);
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
  await writePrivateFile(out, kubeconfigText({ ...place, user: CONTROLLERS_ACCOUNT, tokenFile }));
}

export async function joinNode(name: string, { client, access, out, clock }: JoinParts): Promise<void> {
  const place = placeOf(access);
  await checkName(name, client);
  const keys = newKeyPair();
  const certPem = await signed(keys, name, client, clock);
  await mkdir(dirname(out), { recursive: true });
  const proof = { certPem, keyPem: privateKeyPem(keys.privateKey) };
  await writePrivateFile(out, kubeconfigText({ ...place, user: userOfNode(name), ...proof }));
}

/** Two agents of one name would each take the other's pods for its own. */
async function checkName(name: string, client: Client): Promise<void> {
  try {
    const { metadata } = await client.get(NODES, { name });
    if (metadata.labels?.[HYPERVISOR_LABEL] !== undefined) return;
  } catch (error) {
    if (isApiError(error, 'NotFound')) return;
    throw error;
  }
  throw new JoinError(`Cannot join: there is a node "${name}" already, and it is none of ours; choose another --name`);
}

/** Where the API server is, and how it is known. */
function placeOf({ server, serverName, certificateAuthority: caPem }: ClusterAccess) {
  if (caPem !== undefined) return { server, serverName, caPem };
  throw new JoinError('Cannot join: the kubeconfig has no certificate-authority; expected one to hand on');
}

async function signed(keys: KeyPair, node: string, client: Client, clock: Clock): Promise<string> {
  const made = await ask(keys, node, client);
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
      const outcome = outcomeOf(await client.get(SIGNING_REQUESTS, name));
      if (outcome !== 'waiting') {
        if ('certPem' in outcome) return outcome.certPem;
        throw new JoinError(`Cannot join: the cluster refused to sign: ${outcome.refused}`);
      }
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

async function ask(keys: KeyPair, node: string, client: Client): Promise<Stored<SigningRequest>> {
  try {
    return await askToSign(client, node, keys);
  } catch (error) {
    if (!(error instanceof NothingSigned)) throw error;
    const how = 'where it is the engine of selfsame, give its directory with --engine-data-dir';
    throw new JoinError(`Cannot join: ${error.message}; ${how}`);
  }
}
