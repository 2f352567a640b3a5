/** Reads the settings that decide about the resources of launcher pods: quotas of the namespace, and overcommit. */
import { configurationOf } from '#api/kubevirt/configuration.ts';
import type { KubeVirt } from '#api/kubevirt/kind.ts';
import { KUBEVIRT_NAME, SYSTEM_NAMESPACE } from '#api/names.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf } from '#client/object-key.ts';
import { limitedResources, type ResourcePolicy } from '#controllers/shared/launcher/launcher-resources.ts';
import type { ResourceQuota } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

/** The name of an index: quotas by namespace. */
export const QUOTAS_BY_NAMESPACE = 'quotas-by-namespace';

export function quotaNamespaces({ metadata }: Stored<ResourceQuota>): string[] {
  return [metadata.namespace ?? ''];
}

const CONFIGURATION_KEY = keyOf({ namespace: SYSTEM_NAMESPACE, name: KUBEVIRT_NAME });

/** Returns the settings for a namespace. `quotas` needs the index QUOTAS_BY_NAMESPACE. */
export function resourcePolicyOf(
  namespace: string | undefined,
  caches: {
    readonly quotas: Pick<Informer<ResourceQuota>, 'byIndex'>;
    readonly kubevirts: Pick<Informer<KubeVirt>, 'get'>;
  },
): ResourcePolicy {
  return {
    limited: limitedResources(caches.quotas.byIndex(QUOTAS_BY_NAMESPACE, namespace ?? '')),
    memoryOvercommit: configurationOf(caches.kubevirts.get(CONFIGURATION_KEY)).memoryOvercommit,
  };
}
