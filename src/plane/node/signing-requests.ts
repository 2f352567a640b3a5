/** CertificateSigningRequests for the client certificates of nodes, like those of kubelets. */
import type { Client } from '#client/client.ts';
import { isApiError } from '#kube/api-error.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';
import { NODES_GROUP, userOfNode } from '#kube/node-user.ts';
import { makeRequest, type KeyPair } from '#lib/pki/x509.ts';

export interface SigningRequest extends KubeObject {
  spec: { request: string; signerName: string; usages: string[] };
  status?: { certificate?: string; conditions?: Record<string, unknown>[] };
}

export const SIGNING_REQUESTS: ResourceType<SigningRequest> = {
  group: 'certificates.k8s.io',
  version: 'v1',
  kind: 'CertificateSigningRequest',
  plural: 'certificatesigningrequests',
  namespaced: false,
};

const KUBELET_SIGNER = 'kubernetes.io/kube-apiserver-client-kubelet';

/** Thrown if the API server does not sign certificates. */
export class SigningUnavailableError extends Error {
  override name = 'SigningUnavailableError';
}

/** Throws SigningUnavailableError or ApiError. */
export async function requestSigning(
  client: Pick<Client, 'create'>,
  node: string,
  keys: KeyPair,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<Stored<SigningRequest>> {
  const request = makeRequest({ commonName: userOfNode(node), organizations: [NODES_GROUP] }, keys);
  const usages = ['digital signature', 'client auth'];
  const spec = { request: Buffer.from(request, 'utf8').toString('base64'), signerName: KUBELET_SIGNER, usages };
  const metadata = { generateName: `selfsame-node-${node}-` };
  const object = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest', metadata, spec };
  try {
    return await client.create(SIGNING_REQUESTS, object, signal === undefined ? {} : { signal });
  } catch (error) {
    if (!isApiError(error, 'NotFound')) throw error;
    throw new SigningUnavailableError('this API server does not sign certificates of nodes (certificates.k8s.io)');
  }
}

type SigningOutcome = { readonly certPem: string } | { readonly refused: string } | 'waiting';

export function signingOutcomeOf({ status }: SigningRequest): SigningOutcome {
  if (status?.certificate) return { certPem: Buffer.from(status.certificate, 'base64').toString('utf8') };
  const refusal = status?.conditions?.find(({ type }) => type === 'Failed' || type === 'Denied');
  return refusal === undefined ? 'waiting' : { refused: String(refusal['message']) };
}
