/** Filters nodes without enough free resources, or on which the requested host ports are in use. */
import { type NodeFilter, resolvableRefusal } from '#engine/controllers/scheduler/filters/node-filter.ts';
import type { NodeView } from '#engine/controllers/scheduler/node-usage.ts';
import type { HostPort, PodFacts } from '#engine/controllers/scheduler/pod-facts.ts';
import { POD_COUNT } from '#engine/controllers/scheduler/requests.ts';

export const resourceFilter: NodeFilter = (facts) => (node) => {
  const missing = findInsufficient(facts, node);
  return missing.length === 0 ? undefined : resolvableRefusal(...missing);
};

/** Returns the reasons why the pod does not fit, with Kubernetes' wording. */
export function findInsufficient(
  { requests }: Pick<PodFacts, 'requests'>,
  { allocatable, requested, pods }: Pick<NodeView, 'allocatable' | 'requested' | 'pods'>,
): string[] {
  const missing: string[] = [];
  if (pods.size + 1 > (allocatable.get(POD_COUNT) ?? 0)) missing.push('Too many pods');
  for (const [name, amount] of requests) {
    if (amount > 0 && amount > (allocatable.get(name) ?? 0) - (requested.get(name) ?? 0)) {
      missing.push(`Insufficient ${name}`);
    }
  }
  return missing;
}

const ANY_IP = '0.0.0.0';

export const portFilter: NodeFilter = ({ hostPorts }) => {
  if (hostPorts.length === 0) return undefined;
  const refusal = resolvableRefusal("node(s) didn't have free ports for the requested pod ports");
  return ({ pods }) => {
    for (const other of pods.values()) {
      if (other.hostPorts.some((taken) => hostPorts.some((wanted) => portsConflict(wanted, taken)))) return refusal;
    }
    return undefined;
  };
};

function portsConflict(a: HostPort, b: HostPort): boolean {
  if (a.port !== b.port || a.protocol !== b.protocol) return false;
  return a.ip === b.ip || a.ip === ANY_IP || b.ip === ANY_IP;
}
