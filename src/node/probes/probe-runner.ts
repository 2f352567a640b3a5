/**
 * Runs the probes of this node's guests periodically and reports changes of their health. A guest that is paused, frozen or
 * migrating is not probed and keeps its health. A new agent of the node keeps the readiness that its predecessor reported
 * until a probe fails.
 */
import type { Probe } from '#api/domain/probe.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { isTrue } from '#kube/conditions.ts';
import { deepEqual } from '#kube/deep.ts';
import type { Stored } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import type { GuestAccess } from '#node/hypervisor/guest-access.ts';
import type { DomainInfo, Hypervisor } from '#node/hypervisor/hypervisor.ts';
import {
  applyResult,
  initialState,
  initialWaitMs,
  probeTiming,
  type ProbeKind,
  type ProbeState,
} from '#node/probes/decide-probe.ts';
import { runProbe, type ProbeResult } from '#node/probes/run-probe.ts';
import type { EventRecorder } from '#runtime/events.ts';

/** The health of a guest according to its probes; empty if it has none. */
export interface GuestHealth {
  /** Absent without a readiness probe. */
  readonly ready?: boolean;
  /** The reason why the guest has to be stopped. */
  readonly livenessFailure?: string;
}

interface ProbeRunnerOptions {
  readonly hypervisor: Pick<Hypervisor, 'get' | 'onChange' | 'askAgent'>;
  readonly ports: Pick<GuestAccess, 'openPort'>;
  readonly events: Pick<EventRecorder, 'record'>;
  readonly clock: Clock;
  readonly log: Log;
}

interface ActiveProbe {
  readonly probe: Probe;
  readonly startedAtMs: number;
  state: ProbeState;
  message: string;
  cancel: () => void;
}

const KINDS: readonly ProbeKind[] = ['liveness', 'readiness'];
const KIND_TEXTS = { liveness: 'Liveness', readiness: 'Readiness' } as const;

export class ProbeRunner {
  readonly #options: ProbeRunnerOptions;
  readonly #probes = new Map<string, Partial<Record<ProbeKind, ActiveProbe>>>();
  readonly #listeners = new Set<(id: string) => void>();
  readonly #unsubscribe: () => void;
  #stopped = false;

  constructor(options: ProbeRunnerOptions) {
    this.#options = options;
    this.#unsubscribe = options.hypervisor.onChange((id) => {
      if (this.#probes.has(id) && !this.#isPresent(id)) this.forget(id);
    });
  }

  /** Returns the health of the instance's guest, and starts or updates its probes. */
  healthOf(vmi: Stored<VirtualMachineInstance>): GuestHealth | undefined {
    this.#updateProbes(vmi);
    return this.#get(vmi.metadata.uid);
  }

  #get(id: string): GuestHealth | undefined {
    const probesOfGuest = this.#probes.get(id);
    if (probesOfGuest === undefined) return undefined;
    const { liveness, readiness } = probesOfGuest;
    return {
      ...(readiness !== undefined && { ready: readiness.state.status === 'healthy' }),
      ...(liveness?.state.status === 'unhealthy' && { livenessFailure: liveness.message }),
    };
  }

  onChange(listener: (id: string) => void): void {
    this.#listeners.add(listener);
  }

  /** Stops the probes of a guest. */
  forget(id: string): void {
    const probesOfGuest = this.#probes.get(id);
    if (probesOfGuest === undefined) return;
    for (const kind of KINDS) probesOfGuest[kind]?.cancel();
    this.#probes.delete(id);
  }

  stop(): void {
    this.#stopped = true;
    this.#unsubscribe();
    this.#listeners.clear();
    for (const id of [...this.#probes.keys()]) this.forget(id);
  }

  #isPresent(id: string): boolean {
    const { state } = this.#options.hypervisor.get(id)?.current ?? {};
    return state === 'running' || state === 'paused';
  }

  #updateProbes(vmi: Stored<VirtualMachineInstance>): void {
    const { uid: id } = vmi.metadata;
    const domain = this.#options.hypervisor.get(id);
    const probes = { liveness: vmi.spec.livenessProbe, readiness: vmi.spec.readinessProbe };
    const hasProbes = probes.liveness !== undefined || probes.readiness !== undefined;
    if (this.#stopped || domain === undefined || !this.#isPresent(id) || !hasProbes) return this.forget(id);
    const probesOfGuest = this.#probes.get(id) ?? {};
    this.#probes.set(id, probesOfGuest);
    for (const kind of KINDS) {
      const probe = probes[kind];
      const known = probesOfGuest[kind];
      if (probe === undefined || (known?.startedAtMs === domain.startedAtMs && deepEqual(known.probe, probe))) continue;
      known?.cancel();
      probesOfGuest[kind] = this.#startProbe(vmi, domain, kind, probe);
    }
  }

  #startProbe(vmi: Stored<VirtualMachineInstance>, domain: DomainInfo, kind: ProbeKind, probe: Probe): ActiveProbe {
    const { clock } = this.#options;
    const { startedAtMs } = domain;
    const wasReady = isTrue(vmi.status?.conditions, 'Ready');
    const active: ActiveProbe = {
      probe,
      startedAtMs,
      state: initialState(kind, wasReady),
      message: '',
      cancel: () => undefined,
    };
    const wait = initialWaitMs(probeTiming(probe, kind), clock.now() - startedAtMs);
    active.cancel = clock.after(wait, () => void this.#runOnce(vmi, kind, active));
    return active;
  }

  async #runOnce(vmi: Stored<VirtualMachineInstance>, kind: ProbeKind, active: ActiveProbe): Promise<void> {
    const { uid: id } = vmi.metadata;
    const { clock, hypervisor, ports, log } = this.#options;
    const timing = probeTiming(active.probe, kind);
    const startedAtMs = clock.elapsed();
    const isCurrent = () => !this.#stopped && this.#probes.get(id)?.[kind] === active;
    try {
      if (canAnswer(hypervisor.get(id))) {
        const result = await runProbe(id, active.probe, timing.timeoutMs, { hypervisor, ports, clock });
        // The result does not count if the guest was paused meanwhile.
        if (isCurrent() && canAnswer(hypervisor.get(id))) this.#recordResult(vmi, kind, active, result);
      }
    } catch (err) {
      log.error({ err, domain: id }, 'Cannot run a probe of a guest');
    }
    if (!isCurrent()) return;
    const wait = Math.max(0, startedAtMs + timing.periodMs - clock.elapsed());
    active.cancel = clock.after(wait, () => void this.#runOnce(vmi, kind, active));
  }

  #recordResult(vmi: Stored<VirtualMachineInstance>, kind: ProbeKind, active: ActiveProbe, result: ProbeResult): void {
    const { events } = this.#options;
    const recordUnhealthy = () => {
      const message = `${KIND_TEXTS[kind]} probe failed: ${result.message}`;
      events.record(vmi, { type: 'Warning', reason: 'Unhealthy', message });
    };
    // A guest is not stopped because the probe cannot reach it.
    if (result.isUnreachable === true && kind === 'liveness') {
      if (active.message !== result.message) recordUnhealthy();
      active.message = result.message;
      return;
    }
    const before = active.state;
    const timing = probeTiming(active.probe, kind);
    active.state = applyResult(before, result.succeeded, timing);
    active.message = result.message;
    const { status, streak } = active.state;
    // Later failures are not recorded, to avoid an Event every ten seconds.
    if (!result.succeeded && streak <= timing.failureThreshold) recordUnhealthy();
    if (status === before.status) return;
    if (kind === 'liveness' && status === 'unhealthy') {
      const message = `The guest failed its liveness probe ${streak} times in a row and is stopped.`;
      events.record(vmi, { type: 'Warning', reason: 'LivenessProbeFailed', message });
    }
    this.#notify(vmi.metadata.uid);
  }

  #notify(id: string): void {
    for (const listener of this.#listeners) listener(id);
  }
}

/** Reports whether a guest can answer a probe. A frozen guest must not be stopped because it does not. */
function canAnswer(domain: DomainInfo | undefined): boolean {
  return domain?.current.state === 'running' && domain.frozenUntilMs === undefined;
}
