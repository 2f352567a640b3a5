/** What a launcher pod says of its guest. Pure. */
import { MIGRATED_REASON, UNREADY_REASON } from '#api/names.ts';
import { timestamp } from '#lib/clock.ts';
import type { Domain, DomainState } from '#node/hypervisor/hypervisor.ts';
import type { DomainMigration } from '#node/hypervisor/migration.ts';
import type { Health } from '#node/probes/probe-keeper.ts';
import { terminated, type PodView } from '#node/pods/pod-status.ts';

/** The exit codes that QEMU's process would have had: fine, killed, failed. */
const ENDINGS = {
  shutdown: { phase: 'Succeeded', exitCode: 0, containerReason: 'Completed', reason: undefined },
  destroyed: { phase: 'Failed', exitCode: 137, containerReason: 'Killed', reason: 'Killed' },
  crashed: { phase: 'Failed', exitCode: 1, containerReason: 'Error', reason: 'GuestCrashed' },
  migrated: { phase: 'Succeeded', exitCode: 0, containerReason: 'Completed', reason: MIGRATED_REASON },
} as const;

const MESSAGES = {
  shutdown: undefined,
  destroyed: 'The guest was switched off.',
  crashed: 'The process of the guest ended unexpectedly.',
  migrated: 'The guest has gone to another node.',
} as const;

export function domainView(domain: Domain, nowMs: number, health: Health = {}): PodView {
  const { current, startedAtMs, migration } = domain;
  const committed = migration && { committed: { uid: migration.uid, is: isCommitted(migration) } };
  if (current.state === 'ended') return { ...endedView(current, startedAtMs, nowMs), ...committed };
  const running = { running: { startedAt: timestamp(startedAtMs) } };
  // It may have begun long before this pod.
  if (current.state === 'incoming')
    return { phase: 'Running', notReady: 'MigrationTarget', state: running, ...committed };
  const unready = health.ready === false ? { notReady: UNREADY_REASON } : {};
  return { phase: 'Running', state: running, startedAtMs, ...unready, ...committed };
}

/** The guest belongs to the target. */
function isCommitted({ role, step }: DomainMigration): boolean {
  return role === 'source' ? step === 'migrated' || step === 'left' : step === 'committed' || step === 'arrived';
}

function endedView(
  ended: Extract<DomainState, { state: 'ended' }>,
  startedAtMs: number,
  finishedAtMs: number,
): PodView {
  const { phase, exitCode, containerReason, reason } = ENDINGS[ended.how];
  const message = ended.message ?? MESSAGES[ended.how];
  const state = terminated({ exitCode, reason: containerReason, message, startedAtMs, finishedAtMs });
  return {
    phase,
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
    state,
    startedAtMs,
  };
}

/** A guest that was reported and is not there any more: the machine was restarted, or its files were lost. */
export function lostView(nowMs: number): PodView {
  const message = 'The guest ran on this node and is not there any more.';
  const state = terminated({ exitCode: 137, reason: 'GuestLost', message, startedAtMs: nowMs, finishedAtMs: nowMs });
  return { phase: 'Failed', reason: 'GuestLost', message, state };
}
