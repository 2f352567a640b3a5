/**
 * Decides what the agent does next for one guest. Pure: no clock, no I/O. Actions are carried out in order until one of them
 * fails or changes the domain; after a change, the world is observed and decided on again.
 *
 *   pod bound ─► start ─► running ◄─► paused         pod deleted ─► power button ... destroy ─► ended ─► pod removed
 *                  │          └─► ended: pod Succeeded or Failed, kept for its log until the pod is deleted
 *                  └─ waiting: tried again    failed: pod Failed
 *
 * decide-outgoing.ts decides about guests that migrate to other nodes, decide-incoming.ts about those that arrive.
 */
import { deepEqual } from '#kube/deep.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import { refusedView, waitingView } from '#node/pods/pod-status.ts';
import { decideHotplug, hotplugStates } from '#node/domains/hotplug/decide-hotplug.ts';
import { type HotplugState, hotplugDevices } from '#node/domains/hotplug/hotplug-devices.ts';
import { decideIncoming } from '#node/domains/decide-incoming.ts';
import { decideMigrate, decideOutgoing, isMoving, progressToReport } from '#node/domains/decide-outgoing.ts';
import { decideStop } from '#node/domains/decide-stop.ts';
import type { DomainAction } from '#node/domains/domain-action.ts';
import { domainView, lostGuestView } from '#node/domains/domain-view.ts';
import type { DomainWorld } from '#node/domains/domain-world.ts';
import { isActivePod, isInstanceOnNode } from '#node/guests/guest-objects.ts';
import { isReported } from '#node/domains/vmi-report.ts';

/** The first attempts are not reported, to save writes: a claim is usually bound within two of them. */
const TRIES_BEFORE_REPORT = 3;
/** A fallback in case the change that makes the pod active is missed. */
const INACTIVE_POD_RECHECK_MS = 10_000;

export function decideDomain(world: DomainWorld): readonly DomainAction[] {
  const { pod, domain } = world;
  if (domain?.origin === 'host-api') return decideHostApiDomain(world);
  const outgoing = decideOutgoing(world);
  if (outgoing?.is === 'exclusive') return outgoing.actions;
  if (pod === undefined) return removeUnwanted(world, 'the pod of the guest is gone');
  if (outgoing?.is === 'reportOnly' && domain !== undefined) {
    return hasEnded(pod) ? reportProgress(world) : reportDomain(world, domain);
  }
  const incoming = decideIncoming(world, pod);
  if (incoming !== undefined) return incoming;
  if (pod.metadata.deletionTimestamp !== undefined) return [...reportProgress(world), ...decideStop(world, pod)];
  if (domain !== undefined && hasEnded(pod)) return [...reportProgress(world), ...destroyLeftover(world)];
  if (domain !== undefined && hasFailedLiveness(world)) return decideStop(world, pod);
  if (domain !== undefined) return reportDomain(world, domain);
  if (hasEnded(pod)) return [];
  if (pod.status?.phase === 'Running') return [{ do: 'reportPod', view: lostGuestView(world.nowMs) }];
  return decideStart(world, pod);
}

/**
 * Reports whether a guest has to stop because its liveness probe failed. It is stopped like a deleted one, and reported
 * once it has ended.
 */
function hasFailedLiveness({ domain, health }: DomainWorld): boolean {
  return health?.livenessFailure !== undefined && domain?.current.state !== 'ended';
}

/** Leaves a domain that the host API created to the host API. Only its devices are read, as for every guest. */
function decideHostApiDomain(world: DomainWorld): readonly DomainAction[] {
  const { pod } = world;
  const reading = decideReading(world);
  if (pod === undefined) return reading;
  if (pod.metadata.deletionTimestamp === undefined) {
    if (hasEnded(pod)) return reading;
    const message = 'A guest with this id was created through the host API and still exists.';
    return [{ do: 'reportPod', view: waitingView('DomainInUse', message) }, ...reading];
  }
  return pod.metadata.deletionGracePeriodSeconds === 0 ? reading : [{ do: 'removePod' }, ...reading];
}

function removeUnwanted({ domain, attempt }: DomainWorld, why: string): readonly DomainAction[] {
  if (domain === undefined) return attempt === undefined ? [] : [{ do: 'remove' }];
  return domain.current.state === 'ended' ? [{ do: 'remove' }] : [{ do: 'destroy', why }, { do: 'remove' }];
}

/** Switches off a guest whose pod has ended. An ended domain is kept for its log until the pod is deleted. */
function destroyLeftover({ domain }: DomainWorld): readonly DomainAction[] {
  if (domain === undefined || domain.current.state === 'ended') return [];
  return [{ do: 'destroy', why: 'the pod of the guest has ended' }];
}

/** Reports only the progress of a migration: for guests whose other state is not reported anymore. */
function reportProgress(world: DomainWorld): readonly DomainAction[] {
  const { vmi, domain, node } = world;
  if (vmi === undefined || domain === undefined || !isInstanceOnNode(vmi, node.name)) return [];
  const isCurrent = deepEqual(progressToReport(world), vmi.status?.migrationProgress);
  return isCurrent ? [] : [{ do: 'reportVmi', hotplug: undefined }];
}

function reportDomain(world: DomainWorld, domain: NonNullable<DomainWorld['domain']>): readonly DomainAction[] {
  const podReport: DomainAction = { do: 'reportPod', view: domainView(domain, world.nowMs, world.health) };
  const { vmi, node, inspection, reading, agent } = world;
  // The API may refuse status writes until the instance names this node; that change triggers another decision.
  if (vmi === undefined || !isInstanceOnNode(vmi, node.name)) return [podReport];
  const isAway = isMoving(domain, vmi);
  const reads = isAway ? [] : decideReading(world);
  // Read the devices first: usually one status write then suffices instead of two.
  if (reads.some((action) => action.do === 'learn')) return [podReport, ...reads];
  const { hotplug, actions } = isAway ? NO_DEVICE_CHANGES : decideDevices(world, vmi);
  const isCurrent = isReported(vmi, {
    domain,
    node,
    inspection,
    network: world.network,
    reading,
    hotplug,
    agent,
    progress: progressToReport(world),
  });
  const vmiReport: readonly DomainAction[] = isCurrent ? [] : [{ do: 'reportVmi', hotplug }];
  // The status comes first: the controller reads it as soon as the pod says that the guest has left.
  if (isAway) return [...vmiReport, podReport, ...decideMigrate(world)];
  return [podReport, ...vmiReport, ...actions, ...reads];
}

function decideReading({ readingDueAtMs, elapsedMs }: DomainWorld): readonly DomainAction[] {
  if (readingDueAtMs === undefined) return [];
  return readingDueAtMs <= elapsedMs ? [{ do: 'learn' }] : [{ do: 'recheck', afterMs: readingDueAtMs - elapsedMs }];
}

/** No device is plugged or unplugged during a migration. */
const NO_DEVICE_CHANGES = { hotplug: undefined, actions: [] };

/** Decides about hotplug. Nothing is plugged or unplugged if the guest has ended or its instance is deleted. */
function decideDevices(
  { domain, inspection, hotplugNotes, elapsedMs }: DomainWorld,
  vmi: NonNullable<DomainWorld['vmi']>,
): { hotplug: readonly HotplugState[] | undefined; actions: readonly DomainAction[] } {
  const isEnding = domain?.current.state === 'ended' || vmi.metadata.deletionTimestamp !== undefined;
  if (isEnding || inspection === undefined) return { hotplug: undefined, actions: [] };
  const devices = hotplugDevices(vmi, inspection, hotplugNotes);
  const reported = new Set(vmi.status?.hotplug?.map(({ device }) => device));
  return {
    hotplug: hotplugStates(devices, hotplugNotes, (device) => reported.has(device)),
    actions: decideHotplug(devices, hotplugNotes, elapsedMs),
  };
}

function decideStart({ vmi, attempt, elapsedMs }: DomainWorld, pod: Stored<Pod>): readonly DomainAction[] {
  if (vmi === undefined) {
    const message = 'The VirtualMachineInstance that this pod was created for does not exist.';
    return [{ do: 'reportPod', view: waitingView('InstanceMissing', message) }];
  }
  // The pod will be deleted next.
  const { phase } = vmi.status ?? {};
  if (vmi.metadata.deletionTimestamp !== undefined || phase === 'Succeeded' || phase === 'Failed') return [];
  // The status of the instance must name this pod, so that an instance never has two guests. Usually it does already.
  if (!isActivePod(pod, vmi)) return [{ do: 'recheck', afterMs: INACTIVE_POD_RECHECK_MS }];
  if (attempt === undefined) return [{ do: 'start' }];
  if (attempt.is === 'failed') {
    return [{ do: 'remove' }, { do: 'reportPod', view: refusedView(attempt.reason, attempt.message) }];
  }
  if (elapsedMs >= attempt.dueAtMs) return [{ do: 'start' }];
  const recheck: DomainAction = { do: 'recheck', afterMs: attempt.dueAtMs - elapsedMs };
  if (attempt.tries < TRIES_BEFORE_REPORT) return [recheck];
  return [{ do: 'reportPod', view: waitingView(attempt.reason, attempt.message) }, recheck];
}
