/**
 * `selfsame join`: creates a kubeconfig for one of our processes, with the rights of an administrator. A controllers
 * process gets a token of its account, which it renews itself; a node gets a client certificate like a kubelet.
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
import { kubeconfigText } from '#lib/files/kubeconfig-file.ts';
import { newKeyPair, privateKeyPem, type KeyPair } from '#lib/pki/x509.ts';
import { writePrivateFile } from '#lib/files/private-file.ts';
import { HYPERVISOR_LABEL } from '#api/names.ts';
import { CONTROLLERS_ACCOUNT } from '#operator/objects/cluster.ts';
import { requestToken } from '#plane/cluster/account-clients.ts';
import { OWN_TOKEN_SECONDS } from '#plane/cluster/own-token.ts';
import {
  requestSigning,
  SigningUnavailableError,
  signingOutcomeOf,
  SIGNING_REQUESTS,
  type SigningRequest,
} from '#plane/node/signing-requests.ts';

const SIGN_MS = 60_000;
const POLL_MS = 500;
const MAX_APPROVE_ATTEMPTS = 5;

export class JoinError extends Error {
  override name = 'JoinError';
}

interface JoinParts {
  /** A client with the rights of an administrator. */
  readonly client: Client;
  readonly access: ClusterAccess;
  /** Path of the kubeconfig to write. */
  readonly out: string;
  readonly clock: Clock;
}

export async function joinControllers({ client, access, out, clock }: JoinParts): Promise<void> {
  const place = endpointOf(access);
  const { token } = await requestToken(client, CONTROLLERS_ACCOUNT, { seconds: OWN_TOKEN_SECONDS, clock }).catch(
    (error: unknown) => {
      if (!isApiError(error, 'NotFound')) throw error;
      throw new JoinError(
        `Cannot join: service account ${CONTROLLERS_ACCOUNT} does not exist; run selfsame install --apply first`,
      );
    },
  );
  await mkdir(dirname(out), { recursive: true });
  const tokenFile = `${basename(out)}.token`;
  await writePrivateFile(joinPath(dirname(out), tokenFile), token);
  await writePrivateFile(out, kubeconfigText({ ...place, user: CONTROLLERS_ACCOUNT, tokenFile }));
}

export async function joinNode(name: string, { client, access, out, clock }: JoinParts): Promise<void> {
  const place = endpointOf(access);
  await checkName(name, client);
  const keys = newKeyPair();
  const certPem = await obtainCertificate(keys, name, client, clock);
  await mkdir(dirname(out), { recursive: true });
  const credentials = { certPem, keyPem: privateKeyPem(keys.privateKey) };
  await writePrivateFile(out, kubeconfigText({ ...place, user: userOfNode(name), ...credentials }));
}

/** Refuses a name that another agent, such as a kubelet, uses: both would run the same pods. */
async function checkName(name: string, client: Client): Promise<void> {
  try {
    const { metadata } = await client.get(NODES, { name });
    if (metadata.labels?.[HYPERVISOR_LABEL] !== undefined) return;
  } catch (error) {
    if (isApiError(error, 'NotFound')) return;
    throw error;
  }
  throw new JoinError(
    `Cannot join: node "${name}" already exists and was not created by Selfsame; choose another --name`,
  );
}

/** Returns the address of the API server and how to verify it. */
function endpointOf({ server, serverName, certificateAuthority: caPem }: ClusterAccess) {
  if (caPem !== undefined) return { server, serverName, caPem };
  throw new JoinError('Cannot join: the kubeconfig has no certificate-authority; use one that has it');
}

async function obtainCertificate(keys: KeyPair, node: string, client: Client, clock: Clock): Promise<string> {
  const request = await createSigningRequest(keys, node, client);
  const name = { name: request.metadata.name };
  try {
    const approval = {
      type: 'Approved',
      status: 'True',
      reason: 'SelfsameJoin',
      message: `selfsame join approved node ${node}`,
      lastUpdateTime: timestamp(clock.now()),
    };
    await approve(client, request, approval);
    const deadline = clock.elapsed() + SIGN_MS;
    for (;;) {
      const outcome = signingOutcomeOf(await client.get(SIGNING_REQUESTS, name));
      if (outcome !== 'waiting') {
        if ('certPem' in outcome) return outcome.certPem;
        throw new JoinError(`Cannot join: the cluster refused to sign: ${outcome.refused}`);
      }
      if (clock.elapsed() > deadline) {
        const hint = 'check that a controller manager with --cluster-signing-cert-file runs';
        throw new JoinError(
          `Cannot join: the cluster did not sign the certificate of node ${node} within ${SIGN_MS / 1000} s; ${hint}`,
        );
      }
      await delay(clock, POLL_MS, new AbortController());
    }
  } finally {
    await client.delete(SIGNING_REQUESTS, name).catch(() => undefined);
  }
}

/** Approves the request. Controllers of the cluster may approve it at the same time. */
async function approve(
  client: Client,
  created: Stored<SigningRequest>,
  approval: Record<string, unknown>,
): Promise<void> {
  for (let tries = 1, request = created; ; tries++) {
    if (request.status?.conditions?.some(({ type }) => type === 'Approved') === true) return;
    try {
      const status = { ...request.status, conditions: [...(request.status?.conditions ?? []), approval] };
      await client.update(SIGNING_REQUESTS, { ...request, status }, { subresource: 'approval' });
      return;
    } catch (error) {
      if (!isApiError(error, 'Conflict') || tries === MAX_APPROVE_ATTEMPTS) throw error;
      request = await client.get(SIGNING_REQUESTS, { name: created.metadata.name });
    }
  }
}

async function createSigningRequest(keys: KeyPair, node: string, client: Client): Promise<Stored<SigningRequest>> {
  try {
    return await requestSigning(client, node, keys);
  } catch (error) {
    if (!(error instanceof SigningUnavailableError)) throw error;
    const hint = 'for the embedded engine, set --engine-data-dir to its data directory';
    throw new JoinError(`Cannot join: ${error.message}; ${hint}`);
  }
}
