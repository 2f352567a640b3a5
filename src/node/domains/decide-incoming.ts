/**
 * Decides about a launcher pod that receives a guest from another node. Such a pod does not start a guest itself. Pure.
 *
 *   (nothing) ─ session ─► waiting ─► stored ─► committed ─► arrived: an ordinary guest
 *                             │          └─ interrupted: the source is asked until it answers; only it can decide
 *                             └─ interrupted: removed; the pod fails
 */
import { MIGRATION_ABORTED_REASON, MIGRATION_COMMITTED_CONDITION, MIGRATION_UID_LABEL } from '#api/names.ts';
import { isTrue } from '#kube/conditions.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import type { DomainAction } from '#node/domains/domain-action.ts';
import { domainView } from '#node/domains/domain-view.ts';
import type { DomainWorld } from '#node/domains/domain-world.ts';
import type { DomainInfo } from '#node/hypervisor/hypervisor.ts';
import type { TargetStep } from '#node/hypervisor/migration.ts';
import { refusedView, waitingView } from '#node/pods/pod-status.ts';

const NOT_RECEIVED = 'The guest did not arrive from the source node.';
const PENDING = 'The guest has not arrived from the source node yet.';

/** Returns undefined if the pod is treated like any other: it receives no guest, or the guest has arrived. */
export function decideIncoming(world: DomainWorld, pod: Stored<Pod>): readonly DomainAction[] | undefined {
  const uid = pod.metadata.labels?.[MIGRATION_UID_LABEL];
  const { domain } = world;
  if (uid === undefined) return undefined;
  if (domain === undefined) return decideAbsent(world, pod, uid);
  const { migration } = domain;
  if (migration?.role === 'target' && migration.uid === uid) return decideStep(world, pod, domain, migration.step);
  return isLeftover(domain, pod) ? removeLeftover(domain, pod) : undefined;
}

function decideAbsent(world: DomainWorld, pod: Stored<Pod>, uid: string): readonly DomainAction[] | undefined {
  const isReceiving = world.migration?.incoming?.uid === uid;
  if (pod.metadata.deletionTimestamp !== undefined) {
    return isReceiving ? [{ do: 'abortMigration', why: 'the pod on the target node was deleted' }] : undefined;
  }
  if (hasEnded(pod)) return [];
  if (isReceiving) return [{ do: 'reportPod', view: waitingView('MigrationPending', PENDING) }];
  if (pod.status?.phase === 'Running') {
    // A committed guest is lost. Any other was removed before that could be reported.
    return wasCommitted(pod) ? undefined : [{ do: 'remove' }, abortedReport(world)];
  }
  if (world.attempt?.is === 'failed') return [{ do: 'remove' }, abortedReport(world)];
  return [{ do: 'reportPod', view: waitingView('MigrationPending', PENDING) }];
}

function wasCommitted({ status }: Pod): boolean {
  return isTrue(status?.conditions, MIGRATION_COMMITTED_CONDITION);
}

function decideStep(
  world: DomainWorld,
  pod: Stored<Pod>,
  domain: DomainInfo,
  step: TargetStep,
): readonly DomainAction[] | undefined {
  const isDeleted = pod.metadata.deletionTimestamp !== undefined;
  const isReceiving = world.migration?.incoming !== undefined;
  const hasCrashed = domain.current.state === 'ended';
  const view: DomainAction = { do: 'reportPod', view: domainView(domain, world.nowMs) };
  const report = hasEnded(pod) ? [] : [view];
  switch (step) {
    case 'waiting':
      if (!isReceiving) return discardIncoming(world, pod, domain);
      if (hasCrashed) return [{ do: 'abortMigration', why: 'the QEMU process on the target node ended unexpectedly' }];
      return isDeleted ? [{ do: 'abortMigration', why: 'the pod on the target node was deleted' }] : report;
    case 'stored':
      return isReceiving ? (hasCrashed ? [] : report) : decideStored(world, pod, domain, report);
    case 'committed':
      if (isReceiving) return [];
      return hasCrashed ? undefined : [{ do: 'commit' }];
    case 'arrived':
      return undefined;
  }
}

/** Decides about a guest that is stored completely on this node. Only the source knows whether the migration succeeded. */
function decideStored(
  world: DomainWorld,
  pod: Stored<Pod>,
  domain: DomainInfo,
  report: readonly DomainAction[],
): readonly DomainAction[] | undefined {
  const { elapsedMs } = world;
  const uid = domain.migration?.uid;
  const question = world.migration?.outcomeQuery?.uid === uid ? world.migration?.outcomeQuery : undefined;
  const hasCrashed = domain.current.state === 'ended';
  if (question?.answer === 'aborted') return discardIncoming(world, pod, domain);
  if (question?.answer === 'migrated') {
    if (!hasCrashed) return [{ do: 'commit' }];
    // The guest belonged to this node when it crashed.
    if (hasEnded(pod)) return undefined;
    const view = { ...domainView(domain, world.nowMs), committed: { uid: uid ?? '', is: true } };
    return [{ do: 'reportPod', view }];
  }
  const waiting = hasCrashed ? [] : report;
  if (question?.isPending === true) return waiting;
  const dueInMs = (question?.dueAtMs ?? 0) - elapsedMs;
  return [...waiting, dueInMs > 0 ? { do: 'recheck', afterMs: dueInMs } : { do: 'queryOutcome' }];
}

function discardIncoming(world: DomainWorld, pod: Stored<Pod>, domain: DomainInfo): readonly DomainAction[] {
  if (domain.current.state !== 'ended')
    return [{ do: 'destroy', why: 'its migration was aborted, so the guest stays on the source node' }];
  const isDeleted = pod.metadata.deletionTimestamp !== undefined;
  return [
    ...(hasEnded(pod) ? [] : [abortedReport(world)]),
    { do: 'remove' },
    ...(isDeleted && pod.metadata.deletionGracePeriodSeconds !== 0 ? [{ do: 'removePod' } as const] : []),
  ];
}

function abortedReport({ attempt }: DomainWorld): DomainAction {
  const message = attempt?.is === 'failed' ? attempt.message : NOT_RECEIVED;
  return { do: 'reportPod', view: refusedView(MIGRATION_ABORTED_REASON, message) };
}

/**
 * Reports whether the domain is left over from an earlier run of the guest on this node: this pod was never reported to
 * have a guest.
 */
function isLeftover({ migration }: DomainInfo, { status }: Pod): boolean {
  return migration?.role === 'source' && (status?.phase ?? 'Pending') === 'Pending';
}

/** Removes a leftover that has ended; decide-outgoing.ts ends the others. */
function removeLeftover({ current }: DomainInfo, pod: Stored<Pod>): readonly DomainAction[] | undefined {
  if (pod.metadata.deletionTimestamp !== undefined) return undefined;
  const pending: DomainAction = { do: 'reportPod', view: waitingView('MigrationPending', PENDING) };
  return current.state === 'ended' ? [{ do: 'remove' }, pending] : [pending];
}
