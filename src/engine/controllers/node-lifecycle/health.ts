/**
 * When a node last gave a sign of life: its Lease was renewed or its Ready condition was reported anew. Only our own clock
 * counts, and only what we saw change ourselves: whoever starts to watch gives every node a full grace period. Pure.
 */
import type { EngineNode } from '#engine/controllers/kinds.ts';
import { findCondition } from '#kube/conditions.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';

export interface Lease extends KubeObject {
  spec?: { renewTime?: string };
}

export const LEASES: ResourceType<Lease> = {
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  namespaced: true,
};

/** A node's Lease is here, under the node's name. */
export const LEASE_NAMESPACE = 'kube-node-lease';

/** Kubernetes' node-monitor-grace-period. */
export const GRACE_MS = 40_000;
/** For nodes that never reported anything: node-startup-grace-period. */
export const STARTUP_GRACE_MS = 60_000;
/** How often nodes renew their Leases. */
const RENEWAL_MS = 10_000;

export interface NodeHealth {
  readonly uid: string;
  /** Since when we watch this node. */
  readonly sinceMs: number;
  readonly lastSignMs: number;
  /** What the node said last; anything else is a sign of life. */
  readonly heartbeat: string | undefined;
  readonly renewTime: string | undefined;
}

/** A node made anew under the same name starts anew. */
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

/** How long the node may still be silent; nothing or less: it counts as lost. */
export function remainingGraceMs(node: EngineNode, { lastSignMs }: NodeHealth, nowMs: number): number {
  return lastSignMs + graceMs(node) - nowMs;
}

/** Whether we know enough to act on its silence. */
export function isWatchedLongEnough({ sinceMs }: NodeHealth, nowMs: number): boolean {
  return nowMs - sinceMs >= GRACE_MS;
}

/**
 * `full`: no node seems alive, so that most likely it is us who are cut off: nothing is evicted. `partial`: most are
 * lost; no more nodes are emptied.
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
    // One that missed renewals already, when another one is lost, most likely fell silent with it.
    const heard = nowMs - lastSignMs < GRACE_MS - RENEWAL_MS;
    if (readyCondition(node)?.status === 'True' && heard) alive++;
    else lost++;
  }
  if (lost === 0) return 'none';
  if (alive === 0) return 'full';
  return lost >= PARTIAL_MIN_NODES && lost / (lost + alive) >= PARTIAL_SHARE ? 'partial' : 'none';
}
