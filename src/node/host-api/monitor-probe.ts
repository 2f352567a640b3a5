/**
 * Pings the monitors of guests, for `monitorResponse` in the statistics. Only a ping distinguishes a hypervisor that
 * hangs from one that is idle, so each request for statistics causes pings. Per guest, at most one is under way, and
 * its result is reused for FRESH_MS.
 */
import type { Clock } from '#lib/clock.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';

/** Generous: a QEMU on a busy machine answers in milliseconds. */
export const ANSWER_MS = 3000;
export const FRESH_MS = 2000;

interface Probe {
  readonly result: Promise<boolean>;
  /** As of Clock.elapsed; undefined while the ping is under way. */
  completedAtMs?: number;
}

export class MonitorProbe {
  readonly #hypervisor: Pick<Hypervisor, 'ping'>;
  readonly #clock: Clock;
  readonly #probes = new Map<string, Probe>();

  constructor({ hypervisor, clock }: { readonly hypervisor: Pick<Hypervisor, 'ping'>; readonly clock: Clock }) {
    this.#hypervisor = hypervisor;
    this.#clock = clock;
  }

  /**
   * Resolves to the ids of the guests whose monitor answers, after at most ANSWER_MS. Forgets guests that are not in
   * `ids`.
   */
  async findAnswering(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const requested = new Set(ids);
    for (const id of this.#probes.keys()) if (!requested.has(id)) this.#probes.delete(id);
    const answers = await Promise.all(ids.map(async (id) => ((await this.#probe(id)) ? [id] : [])));
    return new Set(answers.flat());
  }

  #probe(id: string): Promise<boolean> {
    const known = this.#probes.get(id);
    const isFresh = known?.completedAtMs === undefined || this.#clock.elapsed() - known.completedAtMs < FRESH_MS;
    if (known !== undefined && isFresh) return known.result;
    const result = this.#hypervisor.ping(id, { timeoutMs: ANSWER_MS }).then(
      () => true,
      () => false,
    );
    const probe: Probe = { result };
    this.#probes.set(id, probe);
    void result.then(() => (probe.completedAtMs = this.#clock.elapsed()));
    return result;
  }
}
