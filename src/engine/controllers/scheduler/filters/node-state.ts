/** Filters cordoned nodes and nodes with taints that the pod does not tolerate. */
import { type NodeFilter, unresolvableRefusal } from '#engine/controllers/scheduler/filters/node-filter.ts';
import type { Taint } from '#engine/controllers/placement/taints.ts';
import { UNSCHEDULABLE, findUntoleratedTaint } from '#engine/controllers/placement/taints.ts';

const CORDON_TAINTS: Taint[] = [{ key: UNSCHEDULABLE, effect: 'NoSchedule' }];
const BLOCKING_EFFECTS: Taint['effect'][] = ['NoSchedule', 'NoExecute'];

export const unschedulableFilter: NodeFilter = ({ tolerations }) => {
  if (findUntoleratedTaint(CORDON_TAINTS, tolerations, BLOCKING_EFFECTS) === undefined) return undefined;
  const refusal = unresolvableRefusal('node(s) were unschedulable');
  return ({ node }) => (node.spec?.unschedulable === true ? refusal : undefined);
};

export const taintFilter: NodeFilter = ({ tolerations }) => {
  return ({ node }) => {
    const taint = findUntoleratedTaint(node.spec?.taints, tolerations, BLOCKING_EFFECTS);
    return taint && unresolvableRefusal(`node(s) had untolerated taint {${taint.key}: ${taint.value ?? ''}}`);
  };
};
