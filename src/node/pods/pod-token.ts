/** Tokens of service accounts that are good for as long as a pod is there. */
import type { Writer } from '#client/client.ts';
import { isApiError } from '#kube/api-error.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';

export interface TokenRequest extends KubeObject {
  spec: { expirationSeconds: number; boundObjectRef: { apiVersion: 'v1'; kind: 'Pod'; name: string; uid: string } };
  status?: { token?: string; expirationTimestamp?: string };
}

/** Tokens are made below their service account. */
export const TOKENS: ResourceType<TokenRequest> = {
  group: '',
  version: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  namespaced: true,
};

/** A guest is not given another one while it runs; so it gets the longest that servers hand out unasked. */
const LIFETIME_SECONDS = 365 * 24 * 60 * 60;

/** Undefined where there is no such account. */
export async function podToken(
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
