/** Where the launcher pod may go: where people say, and where the data of its volumes lies. Pure. */
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { MACHINE_TYPE_LABEL_PREFIX, SCHEDULABLE_LABEL, VOLUME_NODE_ANNOTATION } from '#api/names.ts';
import type { ClaimView } from '#controllers/vmi/vmi-world.ts';
import { isRecord } from '#kube/meta.ts';

const HOSTNAME_LABEL = 'kubernetes.io/hostname';

/** `added` may ask for more, not for something else. */
export function launcherNodeSelector(
  { spec }: VirtualMachineInstance,
  added: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const machine = spec.domain.machine?.type;
  return {
    ...added,
    ...spec.nodeSelector,
    ...(machine ? { [MACHINE_TYPE_LABEL_PREFIX + machine]: 'true' } : {}),
    [SCHEDULABLE_LABEL]: 'true',
  };
}

/** Nodes of volumes of ours that lie on one; two of them leave the pod without a place, and the scheduler says so. */
export function dataNodesOf(claims: Iterable<ClaimView>): string[] {
  const nodes = new Set<string>();
  for (const { volume } of claims) {
    const node = volume?.metadata.annotations?.[VOLUME_NODE_ANNOTATION];
    if (node) nodes.add(node);
  }
  return [...nodes].sort();
}

/** The selector of a node on which the very machine of a guest that runs can go on: an alias may mean another there. */
export function machineSelector({ status }: VirtualMachineInstance): Record<string, string> {
  const machine = status?.machine?.type;
  return machine ? { [MACHINE_TYPE_LABEL_PREFIX + machine]: 'true' } : {};
}

/**
 * People's own affinity, with the nodes of the data required on top, and any other than `notOn`: terms are alternatives,
 * so each of them gets it.
 */
export function launcherAffinity(affinity: unknown, dataNodes: readonly string[], notOn?: string): unknown {
  const elsewhere = notOn === undefined ? [] : [{ key: HOSTNAME_LABEL, operator: 'NotIn', values: [notOn] }];
  const here = dataNodes.map((node) => ({ key: HOSTNAME_LABEL, operator: 'In', values: [node] }));
  const wanted = [...here, ...elsewhere];
  if (wanted.length === 0) return affinity;
  const own = recordOf(affinity);
  const nodeAffinity = recordOf(own['nodeAffinity']);
  const required = recordOf(nodeAffinity['requiredDuringSchedulingIgnoredDuringExecution']);
  const given = required['nodeSelectorTerms'];
  const terms = Array.isArray(given) && given.length > 0 ? given : [{}];
  const nodeSelectorTerms = terms.map((term: unknown) => {
    const { matchExpressions, ...rest } = recordOf(term);
    return { ...rest, matchExpressions: [...(Array.isArray(matchExpressions) ? matchExpressions : []), ...wanted] };
  });
  return {
    ...own,
    nodeAffinity: { ...nodeAffinity, requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } },
  };
}

function recordOf(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {};
}
