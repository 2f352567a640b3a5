/** Service account tokens that are bound to a pod: they are invalid when the pod is gone. */
import type { Writer } from '#client/client.ts';
import { requestServiceAccountToken } from '#client/token-request.ts';
import { isApiError } from '#kube/api-error.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

/** The longest lifetime that API servers grant by default, because a running guest does not get another token. */
const LIFETIME_SECONDS = 365 * 24 * 60 * 60;

/** Requests a token, or returns undefined if the service account does not exist. */
export async function requestPodToken(
  client: Pick<Writer, 'create'>,
  { metadata: { name, namespace, uid } }: Stored<Pod>,
  account: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const boundObjectRef = { apiVersion: 'v1', kind: 'Pod', name, uid } as const;
  const spec = { expirationSeconds: LIFETIME_SECONDS, boundObjectRef };
  try {
    return (await requestServiceAccountToken(client, { namespace, name: account }, spec, { signal })).token;
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}
