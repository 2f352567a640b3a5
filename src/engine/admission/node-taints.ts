/** Taints a new node as not ready; node lifecycle removes the taint when the node is ready. TaintNodesByCondition. */
import type { MutatingStep } from '#engine/admission/admission.ts';
import type { taint } from '#engine/registry/kinds/pod-spec/scheduling.ts';
import { records } from '#engine/registry/kinds/shared/reading.ts';
import { isRecord } from '#kube/meta.ts';
import type { Infer } from '#kube/schema-dsl.ts';

type Taint = Infer<typeof taint>;

const NOT_READY: Taint = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' };

export const taintNewNodes: MutatingStep = ({ operation, resource, subresource, object }) => {
  if (operation !== 'CREATE' || resource.collection !== 'nodes' || subresource !== '' || object === undefined) return;
  if (!isRecord(object['spec'])) object['spec'] = {};
  const spec = object['spec'] as { taints?: Taint[] };
  const taints = records(spec.taints);
  if (taints.some(({ key, effect }) => key === NOT_READY.key && effect === NOT_READY.effect)) return;
  spec.taints = [...taints, { ...NOT_READY }];
};
