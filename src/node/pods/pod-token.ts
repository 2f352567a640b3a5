/** Service account tokens that are bound to a pod: they are invalid when the pod is gone. */
import type { Writer } from '#client/client.ts';
import { isApiError } from '#kube/api-error.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';

export interface TokenRequest extends KubeObject {
  spec: { expirationSeconds: number; boundObjectRef: { apiVersion: 'v1'; kind: 'Pod'; name: string; uid: string } };
  status?: { token?: string; expirationTimestamp?: string };
}

/** Tokens are created as a subresource of the service account. */
export const TOKENS: ResourceType<TokenRequest> = {
  group: '',
  version: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  namespaced: true,
};

/** The longest lifetime that API servers grant by default, because a running guest does not get another token. */
const LIFETIME_SECONDS = 365 * 24 * 60 * 60;

/** Requests a token, or returns undefined if the service account does not exist. */
export async function requestPodToken(
  client: Pick<Writer, 'create'>,
  { metadata: { name, namespace, uid } }: Stored<Pod>,
  account: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const request: TokenRequest = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    metadata: { name: account, namespace },
    spec: { expirationSeconds: LIFETIME_SECONDS, boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid } },
  };
  try {
    return (await client.create(TOKENS, request, { subresource: 'token', signal })).status?.token;
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}
