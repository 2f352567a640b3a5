/** Computes the taints that follow from a node's conditions and from being cordoned. Pure. */
import type { Outage } from '#engine/controllers/node-lifecycle/health.ts';
import { readyCondition } from '#engine/controllers/node-lifecycle/health.ts';
import type { EngineNode } from '#engine/controllers/kinds.ts';
import type { Taint } from '#engine/controllers/placement/taints.ts';
import { NOT_READY, UNREACHABLE, UNSCHEDULABLE } from '#engine/controllers/placement/taints.ts';
import { findCondition } from '#kube/conditions.ts';

const PRESSURES: Readonly<Record<string, string>> = {
  MemoryPressure: 'node.kubernetes.io/memory-pressure',
  DiskPressure: 'node.kubernetes.io/disk-pressure',
  NetworkUnavailable: 'node.kubernetes.io/network-unavailable',
  PIDPressure: 'node.kubernetes.io/pid-pressure',
};

const MANAGED_KEYS: ReadonlySet<string> = new Set([UNSCHEDULABLE, NOT_READY, UNREACHABLE, ...Object.values(PRESSURES)]);

export function isLifecycleTaint({ key }: Taint): boolean {
  return key === NOT_READY || key === UNREACHABLE;
}

/** Returns all taints that the node should have. Taints that this controller does not manage are kept. */
export function wantedTaints(node: EngineNode, outage: Outage, now: string): Taint[] {
  const present = node.spec?.taints ?? [];
  const wanted = managedTaints(node, outage);
  const kept = present.filter((taint) => !isManagedTaint(taint) || wanted.some((one) => isSameTaint(one, taint)));
  const added = wanted.filter((one) => !present.some((taint) => isSameTaint(one, taint)));
  return [...kept, ...added.map((taint) => ({ ...taint, timeAdded: now }))];
}

function managedTaints(node: EngineNode, outage: Outage): Taint[] {
  const present = node.spec?.taints ?? [];
  const keys: string[] = [];
  const conditions = node.status?.conditions;
  for (const [type, key] of Object.entries(PRESSURES)) {
    if (findCondition(conditions, type)?.status === 'True') keys.push(key);
  }
  if (node.spec?.unschedulable === true) keys.push(UNSCHEDULABLE);
  const taints = keys.map((key): Taint => ({ key, effect: 'NoSchedule' }));
  const ready = readyCondition(node)?.status;
  // A node that has not reported yet keeps the taint that it was created with.
  if (ready === undefined) return [...taints, ...present.filter(isLifecycleTaint)];
  if (ready === 'True') return taints;
  const key = ready === 'False' ? NOT_READY : UNREACHABLE;
  taints.push({ key, effect: 'NoSchedule' });
  const isEvicting = present.some((taint) => taint.effect === 'NoExecute' && isLifecycleTaint(taint));
  if (outage === 'none' || (outage === 'partial' && isEvicting)) taints.push({ key, effect: 'NoExecute' });
  return taints;
}

/** Reports whether this controller manages the taint. Users may set its keys with NoExecute and PreferNoSchedule themselves. */
function isManagedTaint(taint: Taint): boolean {
  if (taint.effect === 'NoExecute') return isLifecycleTaint(taint);
  return taint.effect === 'NoSchedule' && MANAGED_KEYS.has(taint.key);
}

export function isSameTaint(a: Taint, b: Taint): boolean {
  return a.key === b.key && a.effect === b.effect;
}
