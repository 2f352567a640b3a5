/** In-memory records of nodes: their last reports, and the times at which taints without timeAdded were first seen. */
import type { Informer } from '#client/informer.ts';
import {
  LEASE_NAMESPACE,
  updateHealth,
  type NodeHealth,
  type Outage,
  detectOutage,
} from '#engine/controllers/node-lifecycle/health.ts';
import type { EngineNode } from '#engine/controllers/kinds.ts';
import type { Taint } from '#engine/controllers/placement/taints.ts';
import type { Lease } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

interface NodeRecord {
  health: NodeHealth;
  /** The time at which each taint was first seen. Used for taints without timeAdded. */
  readonly taintedMs: Map<string, number>;
}

export class NodeRecords {
  readonly #nodes: Informer<EngineNode>;
  readonly #leases: Informer<Lease>;
  readonly #records = new Map<string, NodeRecord>();

  constructor({ nodes, leases }: { nodes: Informer<EngineNode>; leases: Informer<Lease> }) {
    this.#nodes = nodes;
    this.#leases = leases;
  }

  update(node: Stored<EngineNode>, nowMs: number): NodeHealth {
    const { name } = node.metadata;
    const known = this.#records.get(name);
    const health = updateHealth(known?.health, node, this.#leases.get(`${LEASE_NAMESPACE}/${name}`), nowMs);
    const record = known?.health.uid === health.uid ? known : { health, taintedMs: new Map<string, number>() };
    record.health = health;
    this.#records.set(name, record);
    recordTaints(record.taintedMs, node.spec?.taints ?? [], nowMs);
    return health;
  }

  delete(name: string): void {
    this.#records.delete(name);
  }

  outage(nowMs: number): Outage {
    const all = this.#nodes.list().map((node) => [node, this.update(node, nowMs)] as const);
    return detectOutage(all, nowMs);
  }

  taintedSinceMs(node: string, taint: Taint, nowMs: number): number {
    if (taint.timeAdded !== undefined) return Date.parse(taint.timeAdded);
    return this.#records.get(node)?.taintedMs.get(taintKey(taint)) ?? nowMs;
  }
}

function recordTaints(taintedMs: Map<string, number>, taints: readonly Taint[], nowMs: number): void {
  const present = new Set(taints.filter(({ effect }) => effect === 'NoExecute').map(taintKey));
  for (const key of taintedMs.keys()) if (!present.has(key)) taintedMs.delete(key);
  for (const key of present) if (!taintedMs.has(key)) taintedMs.set(key, nowMs);
}

function taintKey({ key, value = '' }: Taint): string {
  return `${key}=${value}`;
}
