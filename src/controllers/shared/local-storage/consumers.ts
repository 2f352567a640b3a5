/** The consumers of claims: pods that have a node and have not ended. */
import { CREATED_BY_LABEL } from '#api/names.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf } from '#client/object-key.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

/** Index of consumers by the keys of their claims. */
const CONSUMERS_BY_CLAIM = 'consumed-claim';

/** Index of consumers by the uid of their instance. */
const CONSUMERS_BY_INSTANCE = 'consumers-by-instance';

export function indexConsumers(pods: Informer<Pod>): void {
  pods.addIndex(CONSUMERS_BY_CLAIM, consumedClaimKeys);
  pods.addIndex(CONSUMERS_BY_INSTANCE, (pod) =>
    isConsumer(pod) ? [pod.metadata.labels?.[CREATED_BY_LABEL] ?? ''] : [],
  );
}

/**
 * Returns the node on which the claim is used. If there are several pods, the one of the instance is preferred. A
 * hotplugged disk is in no pod's spec; then any pod of the instance counts.
 */
export function consumerNode(pods: Informer<Pod>, claimKey: string, instanceUid?: string): string | undefined {
  const users = pods.byIndex(CONSUMERS_BY_CLAIM, claimKey);
  const own = users.find(({ metadata }) => metadata.labels?.[CREATED_BY_LABEL] === (instanceUid ?? ''));
  const runner = own ?? (instanceUid ? pods.byIndex(CONSUMERS_BY_INSTANCE, instanceUid)[0] : undefined);
  return (runner ?? users[0])?.spec.nodeName;
}

/** Returns the keys of the claims that the pod uses. */
export function consumedClaimKeys(pod: Stored<Pod>): string[] {
  const { namespace } = pod.metadata;
  if (!isConsumer(pod)) return [];
  return (pod.spec.volumes ?? []).flatMap(({ persistentVolumeClaim: claim }) =>
    claim === undefined ? [] : [keyOf({ namespace, name: claim.claimName })],
  );
}

/** Reports whether the pod has a node and has not ended. */
function isConsumer({ spec, status }: Pod): boolean {
  return Boolean(spec.nodeName) && status?.phase !== 'Succeeded' && status?.phase !== 'Failed';
}
