/**
 * Decides how to stop a guest whose pod is deleted: press the power button, repeatedly if necessary, and switch the guest off
 * when its grace period is over. The grace period starts when this agent first presses the button, so that a guest is not
 * cut off because no agent was running. Pure.
 */
import { DEFAULT_GRACE_SECONDS } from '#api/virtual-machine-instance/spec.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { DomainAction } from '#node/domains/domain-action.ts';
import { domainView } from '#node/domains/domain-view.ts';
import type { DomainWorld } from '#node/domains/domain-world.ts';
import { hasEnded } from '#kube/pod-phase.ts';

/** The button is pressed repeatedly because guests miss it while they boot. */
const POWER_BUTTON_INTERVAL_MS = 10_000;

export function decideStop(world: DomainWorld, pod: Stored<Pod>): readonly DomainAction[] {
  const { domain, elapsedMs } = world;
  if (domain === undefined || domain.current.state === 'ended') return removeEnded(world, pod);
  const { sinceMs, pressedAtMs } = world.stop ?? { sinceMs: elapsedMs };
  const remainingMs = sinceMs + graceMs(world, pod) - elapsedMs;
  if (remainingMs <= 0) return [{ do: 'destroy', why: 'the guest did not shut down within its grace period' }];

  const dueMs = pressedAtMs === undefined ? 0 : pressedAtMs + POWER_BUTTON_INTERVAL_MS - elapsedMs;
  if (dueMs > 0) return [{ do: 'recheck', afterMs: Math.min(dueMs, remainingMs) }];
  const actions: DomainAction[] = [];
  // A paused guest cannot react to the button.
  if (domain.current.state === 'paused') actions.push({ do: 'resume' });
  actions.push({ do: 'powerDown' }, { do: 'recheck', afterMs: Math.min(POWER_BUTTON_INTERVAL_MS, remainingMs) });
  return actions;
}

function removeEnded({ domain, nowMs }: DomainWorld, pod: Stored<Pod>): readonly DomainAction[] {
  const actions: DomainAction[] = [];
  if (domain !== undefined && !hasEnded(pod)) actions.push({ do: 'reportPod', view: domainView(domain, nowMs) });
  actions.push({ do: 'remove' });
  // A grace period of 0 means that the deletion was requested already, and that only a finalizer keeps the pod.
  if (pod.metadata.deletionGracePeriodSeconds !== 0) actions.push({ do: 'removePod' });
  return actions;
}

/**
 * Returns the grace period: the instance's, or the pod's if that is shorter. Computed at each decision, because it may be
 * shortened meanwhile.
 */
function graceMs({ vmi }: DomainWorld, { metadata, spec }: Stored<Pod>): number {
  const forPod = metadata.deletionGracePeriodSeconds ?? spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS;
  if (vmi === undefined) return forPod * 1000;
  return Math.min(vmi.spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS, forPod) * 1000;
}
