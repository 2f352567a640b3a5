/**
 * The ConfigMap kube-system/extension-apiserver-authentication, which tells aggregated API servers which client
 * certificates and headers to trust. It is checked and corrected at each start.
 */
import type { Client } from '#client/client.ts';
import { extensionAuthentication } from '#engine/auth/front-proxy.ts';
import { CONFIG_MAPS } from '#kube/core-kinds.ts';
import { isApiError } from '#kube/api-error.ts';
import { deepEqual } from '#kube/deep.ts';

const NAME = { namespace: 'kube-system', name: 'extension-apiserver-authentication' };

/** Creates or corrects the ConfigMap. The namespace must exist. Keys that other clients added are kept. */
export async function ensureExtensionAuthentication(client: Client, caPem: string): Promise<void> {
  const data = extensionAuthentication(caPem);
  try {
    const present = await client.get(CONFIG_MAPS, NAME);
    if (deepEqual({ ...present.data, ...data }, present.data)) return;
    await client.patch(CONFIG_MAPS, NAME, { type: 'merge', body: { data } }, {});
  } catch (error) {
    if (!isApiError(error, 'NotFound')) throw error;
    await client.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...NAME }, data });
  }
}
