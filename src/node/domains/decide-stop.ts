/**
 * How a guest whose pod is deleted comes to its end: the power button, pressed again while it does not obey, and the switch
 * when its time is up. Time counts from the moment at which this agent first asked, so that a guest is never cut off because
 * the agent was away. Pure.
 */
import { DEFAULT_GRACE_SECONDS } from '#api/virtual-machine-instance/spec.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { DomainAction } from '#node/domains/domain-action.ts';
import { domainView } from '#node/domains/domain-view.ts';
import type { DomainWorld } from '#node/domains/domain-world.ts';
import { hasEnded } from '#kube/pod-phase.ts';

/** Guests miss the button while they boot. */
export const PRESS_AGAIN_MS = 10_000;

export function decideStop(world: DomainWorld, pod: Stored<Pod>): readonly DomainAction[] {
  const { domain, elapsedMs } = world;
  if (domain === undefined || domain.current.state === 'ended') return finish(world, pod);
  const { sinceMs, pressedAtMs } = world.stopping ?? { sinceMs: elapsedMs };
  const leftMs = sinceMs + graceMs(world, pod) - elapsedMs;
  if (leftMs <= 0) return [{ do: 'destroy', why: 'the guest did not shut down in time' }];

  const dueMs = pressedAtMs === undefined ? 0 : pressedAtMs + PRESS_AGAIN_MS - elapsedMs;
  if (dueMs > 0) return [{ do: 'lookAgain', afterMs: Math.min(dueMs, leftMs) }];
  const actions: DomainAction[] = [];
  // A guest that does not run cannot hear the button.
  if (domain.current.state === 'paused') actions.push({ do: 'resume' });
  actions.push({ do: 'powerDown' }, { do: 'lookAgain', afterMs: Math.min(PRESS_AGAIN_MS, leftMs) });
  return actions;
}

function finish({ domain, nowMs }: DomainWorld, pod: Stored<Pod>): readonly DomainAction[] {
  const actions: DomainAction[] = [];
  if (domain !== undefined && !hasEnded(pod)) actions.push({ do: 'reportPod', view: domainView(domain, nowMs) });
  actions.push({ do: 'remove' });
  // Once asked for, it is held by somebody's finalizer alone.
  if (pod.metadata.deletionGracePeriodSeconds !== 0) actions.push({ do: 'removePod' });
  return actions;
}

/** The instance's own, read anew each time because it may be cut short; less where the pod was deleted with less. */
function graceMs({ vmi }: DomainWorld, { metadata, spec }: Stored<Pod>): number {
  const forPod = metadata.deletionGracePeriodSeconds ?? spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS;
  if (vmi === undefined) return forPod * 1000;
  return Math.min(vmi.spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS, forPod) * 1000;
}
