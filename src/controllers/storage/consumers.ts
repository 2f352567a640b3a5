/** Where claims are used: pods that have a node and have not ended. */
import { CREATED_BY_LABEL } from '#api/names.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf } from '#client/object-key.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

/** Such pods by the key of each claim that they use. */
const CONSUMERS = 'consumed-claim';

export function indexConsumers(pods: Informer<Pod>): void {
  pods.addIndex(CONSUMERS, consumedBy);
}

/** Of several pods the one that runs that instance. */
export function consumerNode(pods: Informer<Pod>, claimKey: string, instanceUid?: string): string | undefined {
  const users = pods.byIndex(CONSUMERS, claimKey);
  const own = users.find(({ metadata }) => metadata.labels?.[CREATED_BY_LABEL] === (instanceUid ?? ''));
  return (own ?? users[0])?.spec.nodeName;
}

/** Keys of claims. */
export function consumedBy({ metadata: { namespace }, spec, status }: Stored<Pod>): string[] {
  if (!spec.nodeName || status?.phase === 'Succeeded' || status?.phase === 'Failed') return [];
  return (spec.volumes ?? []).flatMap(({ persistentVolumeClaim: claim }) =>
    claim === undefined ? [] : [keyOf({ namespace, name: claim.claimName })],
  );
}
