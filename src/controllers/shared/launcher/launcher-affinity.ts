/** Computes the nodes on which the launcher pod may run, from the spec and the location of its volumes. Pure. */
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { MACHINE_TYPE_LABEL_PREFIX, SCHEDULABLE_LABEL, VOLUME_NODE_ANNOTATION } from '#api/names.ts';
import type { ClaimView } from '#controllers/shared/launcher/claim-views.ts';
import { isRecord } from '#kube/meta.ts';

const HOSTNAME_LABEL = 'kubernetes.io/hostname';

/** Returns the node selector. `added` can add labels but not change those of the spec. */
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

/**
 * Returns the nodes that have local volumes. With two of them the pod fits on no node, and the scheduler reports that.
 */
export function dataNodesOf(claims: Iterable<ClaimView>): string[] {
  const nodes = new Set<string>();
  for (const { volume } of claims) {
    const node = volume?.metadata.annotations?.[VOLUME_NODE_ANNOTATION];
    if (node) nodes.add(node);
  }
  return [...nodes].sort();
}

/**
 * Returns the selector for nodes with the exact machine type of the running guest: an alias may differ between nodes.
 */
export function machineSelector({ status }: VirtualMachineInstance): Record<string, string> {
  const machine = status?.machine?.type;
  return machine ? { [MACHINE_TYPE_LABEL_PREFIX + machine]: 'true' } : {};
}

/**
 * Returns the affinity of the spec with two more requirements: the nodes of the data, and not `excludedNode`. Node
 * selector terms are alternatives, so each of them gets the requirements.
 */
export function launcherAffinity(affinity: unknown, dataNodes: readonly string[], excludedNode?: string): unknown {
  const notOnExcluded =
    excludedNode === undefined ? [] : [{ key: HOSTNAME_LABEL, operator: 'NotIn', values: [excludedNode] }];
  const onDataNodes = dataNodes.map((node) => ({ key: HOSTNAME_LABEL, operator: 'In', values: [node] }));
  const requirements = [...onDataNodes, ...notOnExcluded];
  if (requirements.length === 0) return affinity;
  const own = asRecord(affinity);
  const nodeAffinity = asRecord(own['nodeAffinity']);
  const required = asRecord(nodeAffinity['requiredDuringSchedulingIgnoredDuringExecution']);
  const given = required['nodeSelectorTerms'];
  const terms = Array.isArray(given) && given.length > 0 ? given : [{}];
  const nodeSelectorTerms = terms.map((term: unknown) => {
    const { matchExpressions, ...rest } = asRecord(term);
    return {
      ...rest,
      matchExpressions: [...(Array.isArray(matchExpressions) ? matchExpressions : []), ...requirements],
    };
  });
  return {
    ...own,
    nodeAffinity: { ...nodeAffinity, requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } },
  };
}

function asRecord(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {};
}
