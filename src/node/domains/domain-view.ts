/** Builds what a launcher pod reports about its guest. Pure. */
import { MIGRATED_REASON, UNREADY_REASON } from '#api/names.ts';
import { timestamp } from '#lib/clock.ts';
import type { DomainInfo, DomainState } from '#node/hypervisor/hypervisor.ts';
import type { DomainMigration } from '#node/hypervisor/migration.ts';
import type { GuestHealth } from '#node/probes/probe-runner.ts';
import { terminatedState, type PodView } from '#node/pods/pod-status.ts';

/** The pod's view of each end of a domain, with the exit code that the QEMU process would have had. */
const END_STATES = {
  shutdown: { phase: 'Succeeded', exitCode: 0, containerReason: 'Completed', reason: undefined },
  destroyed: { phase: 'Failed', exitCode: 137, containerReason: 'Killed', reason: 'Killed' },
  crashed: { phase: 'Failed', exitCode: 1, containerReason: 'Error', reason: 'GuestCrashed' },
  migrated: { phase: 'Succeeded', exitCode: 0, containerReason: 'Completed', reason: MIGRATED_REASON },
} as const;

const MESSAGES = {
  shutdown: undefined,
  destroyed: 'The guest was switched off.',
  crashed: 'The process of the guest ended unexpectedly.',
  migrated: 'The guest was migrated to another node.',
} as const;

/** Returns the pod's view of a domain in any state. */
export function domainView(domain: DomainInfo, nowMs: number, health: GuestHealth = {}): PodView {
  const { current, startedAtMs, migration } = domain;
  const committed = migration && { committed: { uid: migration.uid, is: isCommitted(migration) } };
  if (current.state === 'ended') return { ...endedView(current, startedAtMs, nowMs), ...committed };
  const running = { running: { startedAt: timestamp(startedAtMs) } };
  // No startedAtMs: the guest may have started long before this pod.
  if (current.state === 'incoming')
    return { phase: 'Running', notReady: 'MigrationTarget', state: running, ...committed };
  const unready = health.ready === false ? { notReady: UNREADY_REASON } : {};
  return { phase: 'Running', state: running, startedAtMs, ...unready, ...committed };
}

/** Reports whether the guest belongs to the target of the migration. */
function isCommitted({ role, step }: DomainMigration): boolean {
  return role === 'source' ? step === 'migrated' || step === 'left' : step === 'committed' || step === 'arrived';
}

function endedView(
  ended: Extract<DomainState, { state: 'ended' }>,
  startedAtMs: number,
  finishedAtMs: number,
): PodView {
  const { phase, exitCode, containerReason, reason } = END_STATES[ended.how];
  const message = ended.message ?? MESSAGES[ended.how];
  const state = terminatedState({ exitCode, reason: containerReason, message, startedAtMs, finishedAtMs });
  return {
    phase,
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
    state,
    startedAtMs,
  };
}

/**
 * Returns the view of a guest that was reported as running and no longer exists: the machine was restarted, or the
 * domain's files were lost.
 */
export function lostGuestView(nowMs: number): PodView {
  const message = 'The guest ran on this node and no longer exists.';
  const state = terminatedState({
    exitCode: 137,
    reason: 'GuestLost',
    message,
    startedAtMs: nowMs,
    finishedAtMs: nowMs,
  });
  return { phase: 'Failed', reason: 'GuestLost', message, state };
}
