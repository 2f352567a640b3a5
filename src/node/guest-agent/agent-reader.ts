/**
 * Reads operating systems and addresses from guest agents. An agent is read when it connects and then periodically, less
 * often while nothing changes. The reports are kept in memory only: a new agent of the node reads each guest again.
 */
import type { GuestOsInfo } from '#api/guest-info.ts';
import { deepEqual } from '#kube/deep.ts';
import { backoffMs } from '#lib/backoff.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { readInterfaces, readOsInfo, type AgentInterface } from '#node/guest-agent/agent-answers.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';
import { WorkQueue, type WorkResult } from '#runtime/work-queue.ts';

export interface GuestAgentReport {
  readonly os: GuestOsInfo;
  readonly interfaces: readonly AgentInterface[];
}

interface ReadingState {
  readonly startedAtMs: number;
  report?: GuestAgentReport;
  /** Number of consecutive reads without a change or an answer. */
  unchangedReads: number;
  /** Time of the next read, by Clock.elapsed. */
  dueAtMs: number;
}

interface AgentReaderOptions {
  readonly hypervisor: Pick<Hypervisor, 'get' | 'list' | 'onChange' | 'askAgent'>;
  readonly clock: Clock;
  readonly log: Log;
}

const CONCURRENCY = 8;
const READ_BACKOFF = { firstMs: 2000, maxMs: 60_000 };

export class AgentReader {
  readonly #options: AgentReaderOptions;
  readonly #states = new Map<string, ReadingState>();
  readonly #queue: WorkQueue;
  readonly #listeners = new Set<(id: string) => void>();
  readonly #unsubscribe: () => void;

  constructor(options: AgentReaderOptions) {
    this.#options = options;
    const { hypervisor, clock, log } = options;
    this.#queue = new WorkQueue({
      clock,
      concurrency: CONCURRENCY,
      backoff: READ_BACKOFF,
      work: (id) => this.#readIfDue(id),
      onError: (id, err) => log.warn({ err, domain: id }, 'Cannot read a guest agent; it will be tried again'),
    });
    this.#unsubscribe = hypervisor.onChange((id) => this.#queue.add(id));
    for (const { id } of hypervisor.list()) this.#queue.add(id);
  }

  /** Returns undefined if the guest agent is not connected or has not answered yet. */
  get(id: string): GuestAgentReport | undefined {
    return this.#states.get(id)?.report;
  }

  onChange(listener: (id: string) => void): void {
    this.#listeners.add(listener);
  }

  idle(): Promise<void> {
    return this.#queue.idle();
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    this.#listeners.clear();
    await this.#queue.shutdown();
  }

  async #readIfDue(id: string): Promise<WorkResult> {
    const { hypervisor, clock } = this.#options;
    const domain = hypervisor.get(id);
    if (domain?.agent !== 'connected') {
      if (this.#states.delete(id)) this.#notify(id);
      return {};
    }
    let state = this.#states.get(id);
    if (state?.startedAtMs !== domain.startedAtMs) {
      state = { startedAtMs: domain.startedAtMs, unchangedReads: 0, dueAtMs: 0 };
      this.#states.set(id, state);
    }
    // A paused or frozen guest does not answer. The hypervisor reports a change when that is over.
    if (domain.current.state !== 'running' || domain.frozenUntilMs !== undefined) return {};
    const waitMs = state.dueAtMs - clock.elapsed();
    if (waitMs > 0) return { afterMs: waitMs };
    const report = await this.#read(id);
    const isChanged = report !== undefined && !deepEqual(report, state.report);
    state.unchangedReads = isChanged ? 0 : state.unchangedReads + 1;
    const afterMs = backoffMs(state.unchangedReads + 1, READ_BACKOFF);
    state.dueAtMs = clock.elapsed() + afterMs;
    if (isChanged) {
      state.report = report;
      this.#notify(id);
    }
    return { afterMs };
  }

  /** Returns undefined if the guest agent does not answer. */
  async #read(id: string): Promise<GuestAgentReport | undefined> {
    const { hypervisor } = this.#options;
    const ask = (execute: string) => hypervisor.askAgent(id, { execute });
    try {
      const os = readOsInfo(await ask('guest-get-osinfo'));
      const interfaces = readInterfaces(await ask('guest-network-get-interfaces'));
      return { os, interfaces };
    } catch {
      return undefined;
    }
  }

  #notify(id: string): void {
    for (const listener of this.#listeners) listener(id);
  }
}
