/**
 * The loop over the guests of this node: one queue, keyed by the uid of the instance, which is the id of the domain. A turn
 * is observe → decide → act, repeated while acting changed the domain. There are no timers for guests that just run. Of a
 * guest that is between two nodes it only tells.
 *
 * Nothing is decided before the caches have synced: an agent that cannot read the API leaves every guest as it is.
 */
import type { Informer } from '#client/informer.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { type Pod, PODS } from '#kube/core-kinds.ts';
import { act, type ActParts } from '#node/domains/act.ts';
import { decideDomain } from '#node/domains/decide-domain.ts';
import type { DomainAction } from '#node/domains/domain-action.ts';
import type { DomainWorld } from '#node/domains/domain-world.ts';
import { BY_INSTANCE, BY_UID, instanceOf, observeObjects, type Seen } from '#node/domains/observe-domain.ts';
import type { AgentReader } from '#node/guest-agent/agent-reader.ts';
import type { ProbeKeeper } from '#node/probes/probe-keeper.ts';
import { refuseStranger } from '#node/domains/refuse-stranger.ts';
import type { Turns } from '#node/domains/turns.ts';
import { ReadRules } from '#runtime/decision-reads.ts';
import { WorkQueue, type WorkResult } from '#runtime/work-queue.ts';

export interface DomainControllerParts extends ActParts {
  readonly pods: Informer<Pod>;
  readonly vmis: Informer<VirtualMachineInstance>;
  readonly turns: Turns;
  readonly agents: AgentReader;
  readonly probes: ProbeKeeper;
  /** How many guests are started, stopped and reported at a time. */
  readonly concurrency?: number;
}

export interface RunningDomains {
  enqueue(id: string): void;
  idle(): Promise<void>;
  /** Ends the turns that run; guests go on. */
  stop(): Promise<void>;
}

const CONCURRENCY = 16;
/** A turn that goes on changing its domain ends all the same, and is taken up again later. */
const MAX_ROUNDS = 10;
const BACKOFF = { firstMs: 100, maxMs: 10_000 };

/** Of what a decision reads. What a start reads besides is read anew by each try, within BACKOFF.maxMs. */
const RULES = new ReadRules({ name: 'domains', followed: [PODS, VIRTUAL_MACHINE_INSTANCES], rechecks: [] });

/** To be called when the informers have synced; gives them the indexes that it needs. */
export function startDomainController(parts: DomainControllerParts): RunningDomains {
  const { pods, vmis, hypervisor, turns, clock, log, signal, ownPods, ownVmis } = parts;
  pods.addIndex(BY_INSTANCE, instanceOf);
  vmis.addIndex(BY_UID, ({ metadata }) => [metadata.uid]);
  const queue = new WorkQueue({
    clock,
    concurrency: parts.concurrency ?? CONCURRENCY,
    backoff: BACKOFF,
    work: (id) => (isBetweenNodes(id, parts) ? tell(id, parts) : turns.take(id, () => turn(id, parts))),
    onError: (id, error, { failures, delayMs }) => {
      if (!signal.aborted)
        log.error({ err: error, domain: id, failures, delayMs }, 'Cannot tend a guest; trying again');
    },
  });
  const leave = [
    ownPods.follow(pods),
    ownVmis.follow(vmis),
    pods.onChange((_, change) => {
      for (const pod of [change.old, change.new])
        if (pod !== undefined) for (const id of instanceOf(pod)) queue.add(id);
    }),
    vmis.onChange((_, change) => queue.add((change.new ?? change.old)!.metadata.uid)),
    hypervisor.onChange((id) => queue.add(id)),
  ];
  parts.migrations.follow((id) => queue.add(id));
  parts.agents.onChange((id) => queue.add(id));
  parts.probes.onChange((id) => queue.add(id));
  // Also those that nobody wants any more.
  for (const { id } of hypervisor.list()) queue.add(id);
  return {
    enqueue: (id) => queue.add(id),
    idle: () => queue.idle(),
    async stop() {
      for (const end of leave) end();
      await queue.shutdown();
    },
  };
}

async function turn(id: string, parts: DomainControllerParts): Promise<WorkResult> {
  for (let round = 0; round < MAX_ROUNDS; round++) {
    parts.signal.throwIfAborted();
    const { strangers, ...world } = await RULES.begin().during(() => observe(id, parts));
    // Also where others have removed it.
    if (world.domain === undefined) forgetDomain(id, parts);
    for (const pod of strangers) await refuseStranger(pod, parts);
    const done = await actAll(id, world, parts);
    if (!('changed' in done)) return { afterMs: done.afterMs };
  }
  return { retry: true };
}

/** A session moves it: the guest's turn is the session's then, which would have it stand still while it waits for ours. */
function isBetweenNodes(id: string, { hypervisor, migrations }: DomainControllerParts): boolean {
  if (migrations.isSending(id)) return true;
  return migrations.of(id).incoming !== undefined && hypervisor.get(id)?.migration?.role === 'target';
}

/** What takes no turn. The rest is decided again when the session is over. */
const TELLING: ReadonlySet<DomainAction['do']> = new Set(['reportPod', 'reportVmi', 'abortMigration']);

async function tell(id: string, parts: DomainControllerParts): Promise<WorkResult> {
  const { strangers: _, ...world } = await RULES.begin().during(() => observe(id, parts));
  for (const action of decideDomain(world)) if (TELLING.has(action.do)) await act(id, action, world, parts);
  return {};
}

function forgetDomain(id: string, { book, hotplugNotes, migrations, probes }: DomainControllerParts): void {
  book.forget(id);
  migrations.forget(id);
  hotplugNotes.forget(id);
  probes.forget(id);
}

async function actAll(id: string, world: DomainWorld, parts: DomainControllerParts) {
  let afterMs: number | undefined;
  let again = false;
  for (const action of decideDomain(world)) {
    const result = await act(id, action, world, parts);
    if ('changed' in result) return result;
    again ||= result.again === true;
    if (result.afterMs !== undefined) afterMs = Math.min(afterMs ?? result.afterMs, result.afterMs);
  }
  return again ? ({ changed: true } as const) : { afterMs };
}

async function observe(id: string, parts: DomainControllerParts): Promise<DomainWorld & Pick<Seen, 'strangers'>> {
  const { hypervisor, notes, hotplugNotes, book, node, clock } = parts;
  const { strangers, pod, vmi } = await observeObjects(id, hypervisor.get(id), parts);
  const { attempt, stopping } = notes.get(id);
  const domain = hypervisor.get(id);
  return {
    strangers,
    pod,
    vmi,
    domain,
    inspection: hypervisor.inspect(id),
    reading: book.get(id),
    readingDueAtMs: domain && book.dueAtMs(domain),
    hotplugNotes: hotplugNotes.of(id),
    migration: parts.migrations.of(id),
    agent: parts.agents.get(id),
    health: vmi && parts.probes.of(vmi),
    attempt,
    stopping,
    node,
    nowMs: clock.now(),
    elapsedMs: clock.elapsed(),
  };
}
