/** Cordoned nodes, and taints. */
import { type Filter, unresolvable } from '#engine/controllers/scheduler/filters/filter.ts';
import type { Taint } from '#engine/controllers/scheduler/kinds.ts';
import { UNSCHEDULABLE, untolerated } from '#engine/controllers/scheduler/tolerations.ts';

const CORDON: Taint[] = [{ key: UNSCHEDULABLE, effect: 'NoSchedule' }];
const KEEPS_AWAY: Taint['effect'][] = ['NoSchedule', 'NoExecute'];

export const unschedulableFilter: Filter = ({ tolerations }) => {
  if (untolerated(CORDON, tolerations, KEEPS_AWAY) === undefined) return undefined;
  const refusal = unresolvable('node(s) were unschedulable');
  return ({ node }) => (node.spec?.unschedulable === true ? refusal : undefined);
};

export const taintFilter: Filter = ({ tolerations }) => {
  return ({ node }) => {
    const taint = untolerated(node.spec?.taints, tolerations, KEEPS_AWAY);
    return taint && unresolvable(`node(s) had untolerated taint {${taint.key}: ${taint.value ?? ''}}`);
  };
};
