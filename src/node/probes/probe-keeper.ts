/**
 * The probes of this node's guests: each is asked in its own rhythm, and what it comes to is told. Only guests that have
 * probes cost anything. A guest that is paused, frozen or on its way to another node is not asked, and counts as it was.
 * Where an agent of the node takes over, what its predecessor found ready is ready until the contrary is shown.
 */
import type { Probe } from '#api/domain/probe.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { isTrue } from '#kube/conditions.ts';
import { deepEqual } from '#kube/deep.ts';
import type { Stored } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import type { GuestLines } from '#node/hypervisor/guest-lines.ts';
import type { Domain, Hypervisor } from '#node/hypervisor/hypervisor.ts';
import {
  afterAnswer,
  firstState,
  firstWaitMs,
  timingOf,
  type ProbeKind,
  type ProbeState,
} from '#node/probes/decide-probe.ts';
import { runProbe, type ProbeAnswer } from '#node/probes/run-probe.ts';
import type { EventRecorder } from '#runtime/events.ts';

/** What probes say of a guest; empty where it has none. */
export interface Health {
  /** Absent without a readiness probe. */
  readonly ready?: boolean;
  /** Why it is to be stopped. */
  readonly dead?: string;
}

export interface ProbeKeeperOptions {
  readonly hypervisor: Pick<Hypervisor, 'get' | 'onChange' | 'askAgent'>;
  readonly ports: Pick<GuestLines, 'openPort'>;
  readonly events: Pick<EventRecorder, 'record'>;
  readonly clock: Clock;
  readonly log: Log;
}

interface Watched {
  readonly probe: Probe;
  readonly startedAtMs: number;
  state: ProbeState;
  message: string;
  cancel: () => void;
}

const KINDS: readonly ProbeKind[] = ['liveness', 'readiness'];
const WORDS = { liveness: 'Liveness', readiness: 'Readiness' } as const;

export class ProbeKeeper {
  readonly #options: ProbeKeeperOptions;
  readonly #watched = new Map<string, Partial<Record<ProbeKind, Watched>>>();
  readonly #listeners = new Set<(id: string) => void>();
  readonly #leave: () => void;
  #stopped = false;

  constructor(options: ProbeKeeperOptions) {
    this.#options = options;
    this.#leave = options.hypervisor.onChange((id) => {
      if (this.#watched.has(id) && !this.#isHere(id)) this.forget(id);
    });
  }

  /** What is known of the guest of this instance, which is asked from now on as its probes say. */
  of(vmi: Stored<VirtualMachineInstance>): Health | undefined {
    this.#follow(vmi);
    return this.#get(vmi.metadata.uid);
  }

  #get(id: string): Health | undefined {
    const watched = this.#watched.get(id);
    if (watched === undefined) return undefined;
    const { liveness, readiness } = watched;
    return {
      ...(readiness !== undefined && { ready: readiness.state.verdict === 'good' }),
      ...(liveness?.state.verdict === 'bad' && { dead: liveness.message }),
    };
  }

  onChange(listener: (id: string) => void): void {
    this.#listeners.add(listener);
  }

  /** The guest is no more. */
  forget(id: string): void {
    const watched = this.#watched.get(id);
    if (watched === undefined) return;
    for (const kind of KINDS) watched[kind]?.cancel();
    this.#watched.delete(id);
  }

  stop(): void {
    this.#stopped = true;
    this.#leave();
    this.#listeners.clear();
    for (const id of [...this.#watched.keys()]) this.forget(id);
  }

  #isHere(id: string): boolean {
    const { state } = this.#options.hypervisor.get(id)?.current ?? {};
    return state === 'running' || state === 'paused';
  }

  #follow(vmi: Stored<VirtualMachineInstance>): void {
    const { uid: id } = vmi.metadata;
    const domain = this.#options.hypervisor.get(id);
    const probes = { liveness: vmi.spec.livenessProbe, readiness: vmi.spec.readinessProbe };
    const hasProbes = probes.liveness !== undefined || probes.readiness !== undefined;
    if (this.#stopped || domain === undefined || !this.#isHere(id) || !hasProbes) return this.forget(id);
    const watched = this.#watched.get(id) ?? {};
    this.#watched.set(id, watched);
    for (const kind of KINDS) {
      const probe = probes[kind];
      const known = watched[kind];
      if (probe === undefined || (known?.startedAtMs === domain.startedAtMs && deepEqual(known.probe, probe))) continue;
      known?.cancel();
      watched[kind] = this.#begin(vmi, domain, kind, probe);
    }
  }

  #begin(vmi: Stored<VirtualMachineInstance>, domain: Domain, kind: ProbeKind, probe: Probe): Watched {
    const { clock } = this.#options;
    const { startedAtMs } = domain;
    const wasReady = isTrue(vmi.status?.conditions, 'Ready');
    const watched: Watched = {
      probe,
      startedAtMs,
      state: firstState(kind, wasReady),
      message: '',
      cancel: () => undefined,
    };
    const wait = firstWaitMs(timingOf(probe, kind), clock.now() - startedAtMs);
    watched.cancel = clock.after(wait, () => void this.#ask(vmi, kind, watched));
    return watched;
  }

  async #ask(vmi: Stored<VirtualMachineInstance>, kind: ProbeKind, watched: Watched): Promise<void> {
    const { uid: id } = vmi.metadata;
    const { clock, hypervisor, ports, log } = this.#options;
    const timing = timingOf(watched.probe, kind);
    const askedAtMs = clock.elapsed();
    const isCurrent = () => !this.#stopped && this.#watched.get(id)?.[kind] === watched;
    try {
      if (canAnswer(hypervisor.get(id))) {
        const answer = await runProbe(id, watched.probe, timing.timeoutMs, { hypervisor, ports, clock });
        // What became of it meanwhile is no answer.
        if (isCurrent() && canAnswer(hypervisor.get(id))) this.#heard(vmi, kind, watched, answer);
      }
    } catch (err) {
      log.error({ err, domain: id }, 'Cannot ask a guest by its probe');
    }
    if (!isCurrent()) return;
    const wait = Math.max(0, askedAtMs + timing.periodMs - clock.elapsed());
    watched.cancel = clock.after(wait, () => void this.#ask(vmi, kind, watched));
  }

  #heard(vmi: Stored<VirtualMachineInstance>, kind: ProbeKind, watched: Watched, answer: ProbeAnswer): void {
    const { events } = this.#options;
    const tellUnhealthy = () => {
      const message = `${WORDS[kind]} probe failed: ${answer.message}`;
      events.record(vmi, { type: 'Warning', reason: 'Unhealthy', message });
    };
    // Nobody is stopped because we do not know how to ask.
    if (answer.cannotAsk === true && kind === 'liveness') {
      if (watched.message !== answer.message) tellUnhealthy();
      watched.message = answer.message;
      return;
    }
    const before = watched.state;
    const timing = timingOf(watched.probe, kind);
    watched.state = afterAnswer(before, answer.answered, timing);
    watched.message = answer.message;
    const { verdict, streak } = watched.state;
    // One that goes on failing is told once, not every ten seconds for as long as it lasts.
    if (!answer.answered && streak <= timing.failureThreshold) tellUnhealthy();
    if (verdict === before.verdict) return;
    if (kind === 'liveness' && verdict === 'bad') {
      const message = `The guest failed its liveness probe ${streak} times in a row, and is stopped.`;
      events.record(vmi, { type: 'Warning', reason: 'LivenessProbeFailed', message });
    }
    this.#tell(vmi.metadata.uid);
  }

  #tell(id: string): void {
    for (const listener of this.#listeners) listener(id);
  }
}

/** Only a guest that runs here can. One that may not write its disks answers little, and is not stopped for that. */
function canAnswer(domain: Domain | undefined): boolean {
  return domain?.current.state === 'running' && domain.frozenUntilMs === undefined;
}
