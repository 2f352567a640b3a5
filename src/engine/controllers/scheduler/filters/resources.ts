/** Whether what the pod asks for is left on the node, and the ports of the host that it wants. */
import { type Filter, resolvable } from '#engine/controllers/scheduler/filters/filter.ts';
import type { NodeView } from '#engine/controllers/scheduler/node-room.ts';
import type { HostPort, PodFacts } from '#engine/controllers/scheduler/pod-facts.ts';
import { PODS } from '#engine/controllers/scheduler/requests.ts';

export const resourceFilter: Filter = (facts) => (node) => {
  const missing = missingOn(facts, node);
  return missing.length === 0 ? undefined : resolvable(...missing);
};

/** Why it does not fit, each reason in Kubernetes' words. */
export function missingOn(
  { requests }: Pick<PodFacts, 'requests'>,
  { allocatable, requested, pods }: Pick<NodeView, 'allocatable' | 'requested' | 'pods'>,
): string[] {
  const missing: string[] = [];
  if (pods.size + 1 > (allocatable.get(PODS) ?? 0)) missing.push('Too many pods');
  for (const [name, amount] of requests) {
    if (amount > 0 && amount > (allocatable.get(name) ?? 0) - (requested.get(name) ?? 0)) {
      missing.push(`Insufficient ${name}`);
    }
  }
  return missing;
}

const ANY_IP = '0.0.0.0';

export const portFilter: Filter = ({ hostPorts }) => {
  if (hostPorts.length === 0) return undefined;
  const refusal = resolvable("node(s) didn't have free ports for the requested pod ports");
  return ({ pods }) => {
    for (const other of pods.values()) {
      if (other.hostPorts.some((taken) => hostPorts.some((wanted) => clash(wanted, taken)))) return refusal;
    }
    return undefined;
  };
};

function clash(a: HostPort, b: HostPort): boolean {
  if (a.port !== b.port || a.protocol !== b.protocol) return false;
  return a.ip === b.ip || a.ip === ANY_IP || b.ip === ANY_IP;
}
