/** Where claims are used: pods that have a node and have not ended. */
import { CREATED_BY_LABEL } from '#api/names.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf } from '#client/object-key.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

/** Such pods by the key of each claim that they use. */
const CONSUMERS = 'consumed-claim';

/** Such pods by the uid of the instance that they run. */
const RUNNERS = 'consumers-by-instance';

export function indexConsumers(pods: Informer<Pod>): void {
  pods.addIndex(CONSUMERS, consumedBy);
  pods.addIndex(RUNNERS, (pod) => (isUsing(pod) ? [pod.metadata.labels?.[CREATED_BY_LABEL] ?? ''] : []));
}

/**
 * Returns the node on which the claim is used. Of several pods that of the instance counts, and for a disk that was
 * plugged in late, which no pod names, any pod of the instance.
 */
export function consumerNode(pods: Informer<Pod>, claimKey: string, instanceUid?: string): string | undefined {
  const users = pods.byIndex(CONSUMERS, claimKey);
  const own = users.find(({ metadata }) => metadata.labels?.[CREATED_BY_LABEL] === (instanceUid ?? ''));
  const runner = own ?? (instanceUid ? pods.byIndex(RUNNERS, instanceUid)[0] : undefined);
  return (runner ?? users[0])?.spec.nodeName;
}

/** Keys of claims. */
export function consumedBy(pod: Stored<Pod>): string[] {
  const { namespace } = pod.metadata;
  if (!isUsing(pod)) return [];
  return (pod.spec.volumes ?? []).flatMap(({ persistentVolumeClaim: claim }) =>
    claim === undefined ? [] : [keyOf({ namespace, name: claim.claimName })],
  );
}

/** Reports whether the pod has a node and has not ended. */
function isUsing({ spec, status }: Pod): boolean {
  return Boolean(spec.nodeName) && status?.phase !== 'Succeeded' && status?.phase !== 'Failed';
}
