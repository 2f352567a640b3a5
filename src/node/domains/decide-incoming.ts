/**
 * What is to be done for a launcher pod that a guest comes to from another node. Such a pod starts nothing itself. Pure.
 *
 *   (nothing) ─ session ─► waiting ─► stored ─► committed ─► arrived: a guest as any other
 *                             │          └─ cut off: the source is asked, again and again; it alone decides
 *                             └─ cut off: cleared away; the pod fails
 */
import { MIGRATION_ABORTED_REASON, MIGRATION_COMMITTED_CONDITION, MIGRATION_UID_LABEL } from '#api/names.ts';
import { isTrue } from '#kube/conditions.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import type { DomainAction } from '#node/domains/domain-action.ts';
import { domainView } from '#node/domains/domain-view.ts';
import type { DomainWorld } from '#node/domains/domain-world.ts';
import type { Domain } from '#node/hypervisor/hypervisor.ts';
import type { TargetStep } from '#node/hypervisor/migration.ts';
import { refusedView, waitingView } from '#node/pods/pod-status.ts';

const NOTHING_CAME = 'No guest came from the other node.';
const PENDING = 'The guest has not come from the other node yet.';

/** Undefined: there is nothing special about it, or not any more. */
export function decideIncoming(world: DomainWorld, pod: Stored<Pod>): readonly DomainAction[] | undefined {
  const uid = pod.metadata.labels?.[MIGRATION_UID_LABEL];
  const { domain } = world;
  if (uid === undefined) return undefined;
  if (domain === undefined) return decideAbsent(world, pod, uid);
  const { migration } = domain;
  if (migration?.role === 'target' && migration.uid === uid) return decideStep(world, pod, domain, migration.step);
  return isLeftBehind(domain, pod) ? clearLeftBehind(domain, pod) : undefined;
}

function decideAbsent(world: DomainWorld, pod: Stored<Pod>, uid: string): readonly DomainAction[] | undefined {
  const isComing = world.migration?.incoming?.uid === uid;
  if (pod.metadata.deletionTimestamp !== undefined) {
    return isComing ? [{ do: 'abortMigration', why: 'the pod at the target was deleted' }] : undefined;
  }
  if (hasEnded(pod)) return [];
  if (isComing) return [{ do: 'reportPod', view: waitingView('MigrationPending', PENDING) }];
  if (pod.status?.phase === 'Running') {
    // It was here, and belonged here: lost. Otherwise it was cleared away before that could be told.
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
  domain: Domain,
  step: TargetStep,
): readonly DomainAction[] | undefined {
  const isDeleted = pod.metadata.deletionTimestamp !== undefined;
  const isComing = world.migration?.incoming !== undefined;
  const hasDied = domain.current.state === 'ended';
  const view: DomainAction = { do: 'reportPod', view: domainView(domain, world.nowMs) };
  const report = hasEnded(pod) ? [] : [view];
  switch (step) {
    case 'waiting':
      if (!isComing) return clearAway(world, pod, domain);
      if (hasDied) return [{ do: 'abortMigration', why: 'the process of the guest ended while it was awaited' }];
      return isDeleted ? [{ do: 'abortMigration', why: 'the pod at the target was deleted' }] : report;
    case 'stored':
      return isComing ? (hasDied ? [] : report) : decideStored(world, pod, domain, report);
    case 'committed':
      if (isComing) return [];
      return hasDied ? undefined : [{ do: 'commit' }];
    case 'arrived':
      return undefined;
  }
}

/** Everything is on disk here, and only the source knows whether it counts. */
function decideStored(
  world: DomainWorld,
  pod: Stored<Pod>,
  domain: Domain,
  report: readonly DomainAction[],
): readonly DomainAction[] | undefined {
  const { elapsedMs } = world;
  const uid = domain.migration?.uid;
  const question = world.migration?.question?.uid === uid ? world.migration?.question : undefined;
  const hasDied = domain.current.state === 'ended';
  if (question?.answer === 'aborted') return clearAway(world, pod, domain);
  if (question?.answer === 'migrated') {
    if (!hasDied) return [{ do: 'commit' }];
    // It was the guest of the instance, and it has crashed here.
    if (hasEnded(pod)) return undefined;
    const view = { ...domainView(domain, world.nowMs), committed: { uid: uid ?? '', is: true } };
    return [{ do: 'reportPod', view }];
  }
  const waiting = hasDied ? [] : report;
  if (question?.isAsked === true) return waiting;
  const dueInMs = (question?.dueAtMs ?? 0) - elapsedMs;
  return [...waiting, dueInMs > 0 ? { do: 'lookAgain', afterMs: dueInMs } : { do: 'askOutcome' }];
}

function clearAway(world: DomainWorld, pod: Stored<Pod>, domain: Domain): readonly DomainAction[] {
  if (domain.current.state !== 'ended') return [{ do: 'destroy', why: 'it stays where it came from' }];
  const isDeleted = pod.metadata.deletionTimestamp !== undefined;
  return [
    ...(hasEnded(pod) ? [] : [abortedReport(world)]),
    { do: 'remove' },
    ...(isDeleted && pod.metadata.deletionGracePeriodSeconds !== 0 ? [{ do: 'removePod' } as const] : []),
  ];
}

function abortedReport({ attempt }: DomainWorld): DomainAction {
  const message = attempt?.is === 'failed' ? attempt.message : NOTHING_CAME;
  return { do: 'reportPod', view: refusedView(MIGRATION_ABORTED_REASON, message) };
}

/** What an earlier stay left here: this pod has never been reported to have a guest. */
function isLeftBehind({ migration }: Domain, { status }: Pod): boolean {
  return migration?.role === 'source' && (status?.phase ?? 'Pending') === 'Pending';
}

/** Where it has not ended, decide-outgoing.ts ends it. */
function clearLeftBehind({ current }: Domain, pod: Stored<Pod>): readonly DomainAction[] | undefined {
  if (pod.metadata.deletionTimestamp !== undefined) return undefined;
  const pending: DomainAction = { do: 'reportPod', view: waitingView('MigrationPending', PENDING) };
  return current.state === 'ended' ? [{ do: 'remove' }, pending] : [pending];
}
