/**
 * Records when a node last reported: by renewing its Lease or its Ready condition. Times are those of the local clock, at
 * which this process saw the change, so a controller that starts gives every node a full grace period. Pure.
 */
import type { EngineNode } from '#engine/controllers/kinds.ts';
import { findCondition } from '#kube/conditions.ts';
import type { Lease } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

/** The namespace of the nodes' Leases. Each Lease has the name of its node. */
export const LEASE_NAMESPACE = 'kube-node-lease';

/** Kubernetes' node-monitor-grace-period. */
export const GRACE_MS = 40_000;
/** Kubernetes' node-startup-grace-period, for nodes that have never reported. */
const STARTUP_GRACE_MS = 60_000;
/** The interval at which nodes renew their Leases. */
const RENEWAL_MS = 10_000;

export interface NodeHealth {
  readonly uid: string;
  /** The time since which this process watches the node. */
  readonly sinceMs: number;
  readonly lastSignMs: number;
  /** The last heartbeat time that the node reported. Any other value counts as a new report. */
  readonly heartbeat: string | undefined;
  readonly renewTime: string | undefined;
}

/** Returns the updated health. A node with another uid of the same name starts with a full grace period. */
export function updateHealth(
  past: NodeHealth | undefined,
  node: Stored<EngineNode>,
  lease: Lease | undefined,
  nowMs: number,
): NodeHealth {
  const { uid } = node.metadata;
  const heartbeat = readyCondition(node)?.lastHeartbeatTime;
  const renewTime = lease?.spec?.renewTime;
  if (past === undefined || past.uid !== uid) return { uid, sinceMs: nowMs, lastSignMs: nowMs, heartbeat, renewTime };
  const renewed = renewTime !== undefined && (past.renewTime === undefined || renewTime > past.renewTime);
  if (!renewed && heartbeat === past.heartbeat) return past;
  return { ...past, lastSignMs: nowMs, heartbeat, renewTime: renewTime ?? past.renewTime };
}

export function readyCondition({ status }: EngineNode) {
  return findCondition(status?.conditions, 'Ready');
}

export function graceMs(node: EngineNode): number {
  return readyCondition(node) === undefined ? STARTUP_GRACE_MS : GRACE_MS;
}

/** Returns the remaining grace period. The node counts as lost if it is 0 or less. */
export function remainingGraceMs(node: EngineNode, { lastSignMs }: NodeHealth, nowMs: number): number {
  return lastSignMs + graceMs(node) - nowMs;
}

/** Reports whether this process has watched the node long enough to conclude that it is lost. */
export function isWatchedLongEnough({ sinceMs }: NodeHealth, nowMs: number): boolean {
  return nowMs - sinceMs >= GRACE_MS;
}

/**
 * `full`: no node reports, so most likely this process is disconnected; no pod is evicted. `partial`: most nodes are lost;
 * pods are evicted only from nodes where eviction had already begun.
 */
export type Outage = 'none' | 'partial' | 'full';

const EXCLUDED = 'node.kubernetes.io/exclude-disruption';
/** Kubernetes' unhealthy-zone-threshold. */
const PARTIAL_SHARE = 0.55;
const PARTIAL_MIN_NODES = 3;

export function detectOutage(nodes: readonly (readonly [EngineNode, NodeHealth])[], nowMs: number): Outage {
  let alive = 0;
  let lost = 0;
  for (const [node, { lastSignMs }] of nodes) {
    if (Object.hasOwn(node.metadata.labels ?? {}, EXCLUDED)) continue;
    // A node that has missed renewals by the time another one is lost most likely failed with it.
    const hasReported = nowMs - lastSignMs < GRACE_MS - RENEWAL_MS;
    if (readyCondition(node)?.status === 'True' && hasReported) alive++;
    else lost++;
  }
  if (lost === 0) return 'none';
  if (alive === 0) return 'full';
  return lost >= PARTIAL_MIN_NODES && lost / (lost + alive) >= PARTIAL_SHARE ? 'partial' : 'none';
}
