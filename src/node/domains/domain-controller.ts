/**
 * The control loop over the guests of this node: one queue, keyed by the uid of the instance, which is the id of the domain.
 * One pass is observe → decide → act; passes are repeated while actions change the domain. Running guests need no timers.
 * During a migration session the guest is only reported.
 *
 * Nothing is decided before the caches have synced: an agent that cannot read the API leaves every guest as it is.
 */
import type { Informer } from '#client/informer.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { type Pod, PODS } from '#kube/core-kinds.ts';
import { actOnDomain } from '#node/domains/act-on-domain.ts';
import type { DomainActionParts } from '#node/domains/domain-action-parts.ts';
import { decideDomain } from '#node/domains/decide-domain.ts';
import type { DomainAction } from '#node/domains/domain-action.ts';
import type { DomainWorld } from '#node/domains/domain-world.ts';
import { observeObjects, type ObservedObjects } from '#node/domains/observe-domain.ts';
import { PODS_BY_INSTANCE, INSTANCES_BY_UID, instanceUids } from '#node/guests/guest-objects.ts';
import type { AgentReader } from '#node/guest-agent/agent-reader.ts';
import type { ProbeRunner } from '#node/probes/probe-runner.ts';
import type { DomainLocks } from '#node/guests/domain-locks.ts';
import { ReadRules } from '#runtime/decision-reads.ts';
import { WorkQueue, type WorkResult } from '#runtime/work-queue.ts';
import type { Stored } from '#kube/meta.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import { buildPodStatus, refusedView } from '#node/pods/pod-status.ts';
import { removePod, reportPod } from '#node/pods/pod-writer.ts';

interface DomainControllerParts extends DomainActionParts {
  readonly pods: Informer<Pod>;
  readonly vmis: Informer<VirtualMachineInstance>;
  readonly locks: DomainLocks;
  readonly agents: AgentReader;
  readonly probes: ProbeRunner;
  /** Number of guests that are processed at the same time. */
  readonly concurrency?: number;
}

interface DomainController {
  enqueue(id: string): void;
  idle(): Promise<void>;
  /** Resolves when the running passes have ended. Guests keep running. */
  stop(): Promise<void>;
}

const CONCURRENCY = 16;
/** A domain that keeps changing is queued again after this many passes. */
const MAX_PASSES = 10;
const BACKOFF = { firstMs: 100, maxMs: 10_000 };

/** The kinds that a decision reads. A start reads further objects; each attempt, at most BACKOFF.maxMs later, reads them again. */
const RULES = new ReadRules({ name: 'domains', followed: [PODS, VIRTUAL_MACHINE_INSTANCES], rechecks: [] });

/** Starts the loop. Call it when the informers have synced; it adds its indexes to them. */
export function startDomainController(parts: DomainControllerParts): DomainController {
  const { pods, vmis, hypervisor, locks, clock, log, signal, ownPods, ownVmis } = parts;
  pods.addIndex(PODS_BY_INSTANCE, instanceUids);
  vmis.addIndex(INSTANCES_BY_UID, ({ metadata }) => [metadata.uid]);
  const queue = new WorkQueue({
    clock,
    concurrency: parts.concurrency ?? CONCURRENCY,
    backoff: BACKOFF,
    work: (id) =>
      isInMigrationSession(id, parts) ? reportOnly(id, parts) : locks.run(id, () => processDomain(id, parts)),
    onError: (id, error, { failures, delayMs }) => {
      if (!signal.aborted)
        log.error({ err: error, domain: id, failures, delayMs }, 'Cannot reconcile a guest; it will be tried again');
    },
  });
  const unsubscribes = [
    ownPods.track(pods),
    ownVmis.track(vmis),
    pods.onChange((_, change) => {
      for (const pod of [change.old, change.new])
        if (pod !== undefined) for (const id of instanceUids(pod)) queue.add(id);
    }),
    vmis.onChange((_, change) => queue.add((change.new ?? change.old)!.metadata.uid)),
    hypervisor.onChange((id) => queue.add(id)),
  ];
  parts.migrations.setListener((id) => queue.add(id));
  parts.agents.onChange((id) => queue.add(id));
  parts.probes.onChange((id) => queue.add(id));
  // This includes guests whose pods are gone.
  for (const { id } of hypervisor.list()) queue.add(id);
  return {
    enqueue: (id) => queue.add(id),
    idle: () => queue.idle(),
    async stop() {
      for (const unsubscribe of unsubscribes) unsubscribe();
      await queue.shutdown();
    },
  };
}

async function processDomain(id: string, parts: DomainControllerParts): Promise<WorkResult> {
  for (let pass = 0; pass < MAX_PASSES; pass++) {
    parts.signal.throwIfAborted();
    const { mismatchedPods, ...world } = await RULES.begin().during(() => observe(id, parts));
    // The host API may have removed the domain.
    if (world.domain === undefined) forgetDomain(id, parts);
    for (const pod of mismatchedPods) await refuseMismatchedPod(pod, parts);
    const done = await actAll(id, world, parts);
    if (!('changed' in done)) return { afterMs: done.afterMs };
  }
  return { retry: true };
}

/**
 * Reports whether a migration session is in progress. The controller must not take the lock of the domain then: the session
 * would wait for it while the guest is paused.
 */
function isInMigrationSession(id: string, { hypervisor, migrations }: DomainControllerParts): boolean {
  if (migrations.isSending(id)) return true;
  return migrations.get(id).incoming !== undefined && hypervisor.get(id)?.migration?.role === 'target';
}

/** The actions that need no lock. All others are decided again when the session is over. */
const REPORT_ACTIONS: ReadonlySet<DomainAction['do']> = new Set(['reportPod', 'reportVmi', 'abortMigration']);

async function reportOnly(id: string, parts: DomainControllerParts): Promise<WorkResult> {
  const { mismatchedPods: _, ...world } = await RULES.begin().during(() => observe(id, parts));
  for (const action of decideDomain(world))
    if (REPORT_ACTIONS.has(action.do)) await actOnDomain(id, action, world, parts);
  return {};
}

function forgetDomain(id: string, { readings, hotplugNotes, migrations, probes }: DomainControllerParts): void {
  readings.forget(id);
  migrations.forget(id);
  hotplugNotes.forget(id);
  probes.forget(id);
}

async function actAll(id: string, world: DomainWorld, parts: DomainControllerParts) {
  let afterMs: number | undefined;
  let again = false;
  for (const action of decideDomain(world)) {
    const result = await actOnDomain(id, action, world, parts);
    if ('changed' in result) return result;
    again ||= result.decideAgain === true;
    if (result.afterMs !== undefined) afterMs = Math.min(afterMs ?? result.afterMs, result.afterMs);
  }
  return again ? ({ changed: true } as const) : { afterMs };
}

async function observe(
  id: string,
  parts: DomainControllerParts,
): Promise<DomainWorld & Pick<ObservedObjects, 'mismatchedPods'>> {
  const { hypervisor, notes, hotplugNotes, readings, node, clock } = parts;
  const { mismatchedPods, pod, vmi } = await observeObjects(id, hypervisor.get(id), parts);
  const { attempt, stop } = notes.get(id);
  const domain = hypervisor.get(id);
  return {
    mismatchedPods,
    pod,
    vmi,
    domain,
    inspection: hypervisor.inspect(id),
    network: parts.networks?.get(id),
    reading: readings.get(id),
    readingDueAtMs: domain && readings.dueAtMs(domain),
    hotplugNotes: hotplugNotes.get(id),
    migration: parts.migrations.get(id),
    agent: parts.agents.get(id),
    health: vmi && parts.probes.healthOf(vmi),
    attempt,
    stop,
    node,
    nowMs: clock.now(),
    elapsedMs: clock.elapsed(),
  };
}

const REFUSED = refusedView(
  'InstanceMismatch',
  'The labels of this pod name a VirtualMachineInstance that it does not belong to.',
);

/** Fails a pod that has the labels of a launcher without being the launcher of the instance. No guest is affected. */
async function refuseMismatchedPod(pod: Stored<Pod>, parts: DomainActionParts): Promise<void> {
  if (pod.metadata.deletionTimestamp !== undefined) {
    if (pod.metadata.deletionGracePeriodSeconds !== 0) await removePod(pod, parts);
    return;
  }
  if (hasEnded(pod)) return;
  const { node, clock, ownPods } = parts;
  ownPods.record(
    await reportPod(pod, buildPodStatus(pod, REFUSED, { hostIp: node.hostIp, nowMs: clock.now() }), parts),
  );
}
