/**
 * Decides what the agent does next for one guest. Pure: no clock, no I/O. Actions are done in order; the first that fails
 * ends the turn, and after whatever changes the domain the world is looked at again.
 *
 *   pod bound ─► start ─► running ◄─► paused         pod deleted ─► power button ... destroy ─► ended ─► pod removed
 *                  │          └─► ended: pod Succeeded or Failed, kept for its log until the pod is deleted
 *                  └─ waiting: tried again    failed: pod Failed
 *
 * Guests that go to other nodes are decide-outgoing.ts's, those that come decide-incoming.ts's.
 */
import { deepEqual } from '#kube/deep.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import { refusedView, waitingView } from '#node/pods/pod-status.ts';
import { decideHotplug, hotplugStates, type HotplugState } from '#node/domains/decide-hotplug.ts';
import { decideIncoming } from '#node/domains/decide-incoming.ts';
import { decideMigrate, decideOutgoing, isMoving, migrationProgress } from '#node/domains/decide-outgoing.ts';
import { decideStop } from '#node/domains/decide-stop.ts';
import type { DomainAction } from '#node/domains/domain-action.ts';
import { domainView, lostView } from '#node/domains/domain-view.ts';
import type { DomainWorld } from '#node/domains/domain-world.ts';
import { isActive } from '#node/domains/active-pod.ts';
import { hotplugDevices } from '#node/domains/hotplug-devices.ts';
import { isOn } from '#node/domains/instance-node.ts';
import { hasReport } from '#node/domains/vmi-report.ts';

/** What is over in a moment is not worth a write: a claim is mostly bound within the first two. */
const TRIES_BEFORE_TOLD = 3;
/** In case that no news comes of an instance that does not know its pod. */
const UNCLAIMED_MS = 10_000;

export function decideDomain(world: DomainWorld): readonly DomainAction[] {
  const { pod, domain } = world;
  if (domain?.origin === 'host-api') return leaveToHostApi(world);
  const outgoing = decideOutgoing(world);
  if (outgoing?.is === 'first') return outgoing.actions;
  if (pod === undefined) return clearUnwanted(world, 'no pod wants the guest any more');
  if (outgoing?.is === 'held' && domain !== undefined) {
    return hasEnded(pod) ? tellProgress(world) : reportDomain(world, domain);
  }
  const incoming = decideIncoming(world, pod);
  if (incoming !== undefined) return incoming;
  if (pod.metadata.deletionTimestamp !== undefined) return [...tellProgress(world), ...decideStop(world, pod)];
  if (domain !== undefined && hasEnded(pod)) return [...tellProgress(world), ...endLeftover(world)];
  if (domain !== undefined && isUnwell(world)) return decideStop(world, pod);
  if (domain !== undefined) return reportDomain(world, domain);
  if (hasEnded(pod)) return [];
  if (pod.status?.phase === 'Running') return [{ do: 'reportPod', view: lostView(world.nowMs) }];
  return decideStart(world, pod);
}

/** Its liveness probe has failed: it is stopped as a deleted one is, and reported once it has ended. */
function isUnwell({ domain, health }: DomainWorld): boolean {
  return health?.dead !== undefined && domain?.current.state !== 'ended';
}

/** Who made it ends it. Its devices are read as those of all guests are. */
function leaveToHostApi(world: DomainWorld): readonly DomainAction[] {
  const { pod } = world;
  const reading = decideReading(world);
  if (pod === undefined) return reading;
  if (pod.metadata.deletionTimestamp === undefined) {
    if (hasEnded(pod)) return reading;
    const message = 'The host API runs a guest of this id.';
    return [{ do: 'reportPod', view: waitingView('DomainInUse', message) }, ...reading];
  }
  return pod.metadata.deletionGracePeriodSeconds === 0 ? reading : [{ do: 'removePod' }, ...reading];
}

function clearUnwanted({ domain, attempt }: DomainWorld, why: string): readonly DomainAction[] {
  if (domain === undefined) return attempt === undefined ? [] : [{ do: 'remove' }];
  return domain.current.state === 'ended' ? [{ do: 'remove' }] : [{ do: 'destroy', why }, { do: 'remove' }];
}

/** The pod has ended for good; an ended domain stays for its log until the pod goes. */
function endLeftover({ domain }: DomainWorld): readonly DomainAction[] {
  if (domain === undefined || domain.current.state === 'ended') return [];
  return [{ do: 'destroy', why: 'its pod has ended already' }];
}

/** What became of a migration is told also of a guest of which nothing else is told any more. */
function tellProgress(world: DomainWorld): readonly DomainAction[] {
  const { vmi, domain, node } = world;
  if (vmi === undefined || domain === undefined || !isOn(vmi, node.name)) return [];
  const isTold = deepEqual(migrationProgress(world), vmi.status?.migrationProgress);
  return isTold ? [] : [{ do: 'reportVmi', hotplug: undefined }];
}

function reportDomain(world: DomainWorld, domain: NonNullable<DomainWorld['domain']>): readonly DomainAction[] {
  const report: DomainAction = { do: 'reportPod', view: domainView(domain, world.nowMs, world.health) };
  const { vmi, node, inspection, reading, agent } = world;
  // Others may not let us write before the instance says that it is ours; that it does so is news that comes by itself.
  if (vmi === undefined || !isOn(vmi, node.name)) return [report];
  const isAway = isMoving(domain, vmi);
  const learning = isAway ? [] : decideReading(world);
  // First: most of the time there is one thing to tell then instead of two.
  if (learning.some((action) => action.do === 'learn')) return [report, ...learning];
  const { hotplug, actions } = isAway ? UNTOUCHED : decideDevices(world, vmi);
  const isTold = hasReport(vmi, {
    domain,
    node,
    inspection,
    reading,
    hotplug,
    agent,
    progress: migrationProgress(world),
  });
  const telling: readonly DomainAction[] = isTold ? [] : [{ do: 'reportVmi', hotplug }];
  // Whoever hears that it has gone asks what it was like right then.
  if (isAway) return [...telling, report, ...decideMigrate(world)];
  return [report, ...telling, ...actions, ...learning];
}

function decideReading({ readingDueAtMs, elapsedMs }: DomainWorld): readonly DomainAction[] {
  if (readingDueAtMs === undefined) return [];
  return readingDueAtMs <= elapsedMs ? [{ do: 'learn' }] : [{ do: 'lookAgain', afterMs: readingDueAtMs - elapsedMs }];
}

/** Devices neither come nor go while their guest does. */
const UNTOUCHED = { hotplug: undefined, actions: [] };

/** What is on its way: nothing while the guest, or its instance, comes to its end. */
function decideDevices(
  { domain, inspection, hotplugNotes, elapsedMs }: DomainWorld,
  vmi: NonNullable<DomainWorld['vmi']>,
): { hotplug: readonly HotplugState[] | undefined; actions: readonly DomainAction[] } {
  const isOver = domain?.current.state === 'ended' || vmi.metadata.deletionTimestamp !== undefined;
  if (isOver || inspection === undefined) return { hotplug: undefined, actions: [] };
  const devices = hotplugDevices(vmi, inspection, hotplugNotes);
  const told = new Set(vmi.status?.hotplug?.map(({ device }) => device));
  return {
    hotplug: hotplugStates(devices, hotplugNotes, (device) => told.has(device)),
    actions: decideHotplug(devices, hotplugNotes, elapsedMs),
  };
}

function decideStart({ vmi, attempt, elapsedMs }: DomainWorld, pod: Stored<Pod>): readonly DomainAction[] {
  if (vmi === undefined) {
    const message = 'The instance that this pod was made for is not there.';
    return [{ do: 'reportPod', view: waitingView('InstanceMissing', message) }];
  }
  // The pod will be deleted next.
  const { phase } = vmi.status ?? {};
  if (vmi.metadata.deletionTimestamp !== undefined || phase === 'Succeeded' || phase === 'Failed') return [];
  // Never two guests of one instance: it must know this very pod. Mostly it does already, or tells us in a moment.
  if (!isActive(pod, vmi)) return [{ do: 'lookAgain', afterMs: UNCLAIMED_MS }];
  if (attempt === undefined) return [{ do: 'start' }];
  if (attempt.is === 'failed') {
    return [{ do: 'remove' }, { do: 'reportPod', view: refusedView(attempt.reason, attempt.message) }];
  }
  if (elapsedMs >= attempt.dueAtMs) return [{ do: 'start' }];
  const again: DomainAction = { do: 'lookAgain', afterMs: attempt.dueAtMs - elapsedMs };
  if (attempt.tries < TRIES_BEFORE_TOLD) return [again];
  return [{ do: 'reportPod', view: waitingView(attempt.reason, attempt.message) }, again];
}
