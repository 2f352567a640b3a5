/** The columns of `kubectl get pods`. */
import type { KindColumn } from '#engine/registry/kinds/define-kind.ts';
import { podStateOf } from '#engine/registry/kinds/pod/pod-state.ts';
import type { podStatusSchema } from '#engine/registry/kinds/pod/pod-status.ts';
import { age, NONE_TEXT } from '#engine/registry/kinds/shared/columns.ts';
import type { EnginePodSpec } from '#engine/registry/kinds/pod-spec/pod-spec.ts';
import { isTrue } from '#kube/conditions.ts';
import { humanDuration } from '#kube/go/human-duration.ts';
import type { KubeObject } from '#kube/meta.ts';
import type { Infer } from '#kube/schema-dsl.ts';

type Pod = KubeObject & { spec: EnginePodSpec; status?: Infer<typeof podStatusSchema> };

/** Falls back to the older field, because a node may report only that. */
export function podIpOf(status: Pod['status']): string {
  return status?.podIP || (status?.podIPs?.[0]?.ip ?? '');
}

export const podColumns: readonly KindColumn<Pod>[] = [
  {
    name: 'Ready',
    description: 'Number of ready containers and of all containers.',
    value: (pod) => {
      const { ready, total } = podStateOf(pod);
      return `${ready}/${total}`;
    },
  },
  {
    name: 'Status',
    description: 'Aggregate state of the containers of the pod.',
    value: (pod) => podStateOf(pod).reason,
  },
  {
    name: 'Restarts',
    description: 'Number of container restarts, and the time since the last one.',
    value: (pod, now) => {
      const { restarts, lastRestart } = podStateOf(pod);
      if (restarts === 0 || lastRestart === undefined) return String(restarts);
      return `${restarts} (${humanDuration(now - lastRestart)} ago)`;
    },
  },
  age,
  { name: 'IP', priority: 1, value: ({ status }) => podIpOf(status) || NONE_TEXT },
  { name: 'Node', priority: 1, value: ({ spec }) => spec.nodeName || NONE_TEXT },
  { name: 'Nominated Node', priority: 1, value: ({ status }) => status?.nominatedNodeName || NONE_TEXT },
  {
    name: 'Readiness Gates',
    priority: 1,
    value: ({ spec, status }) => {
      const gates = spec.readinessGates ?? [];
      if (gates.length === 0) return NONE_TEXT;
      const open = gates.filter(({ conditionType }) => isTrue(status?.conditions, conditionType));
      return `${open.length}/${gates.length}`;
    },
  },
];
