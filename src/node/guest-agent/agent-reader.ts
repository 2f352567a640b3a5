/**
 * What this process last heard from the agents of its guests: their systems and addresses. An agent that connects is asked
 * at once, and then again and again, less often the longer nothing changes. All of it may be forgotten: a new agent of the
 * node asks each guest once.
 */
import type { GuestOsInfo } from '#api/guest-info.ts';
import { deepEqual } from '#kube/deep.ts';
import { backoffMs } from '#lib/backoff.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { readInterfaces, readOsInfo, type AgentInterface } from '#node/guest-agent/agent-answers.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';
import { WorkQueue, type WorkResult } from '#runtime/work-queue.ts';

export interface AgentNews {
  readonly os: GuestOsInfo;
  readonly interfaces: readonly AgentInterface[];
}

interface Page {
  readonly startedAtMs: number;
  news?: AgentNews;
  /** Readings one after the other that found nothing new, or nobody. */
  idle: number;
  /** By Clock.elapsed. */
  dueAtMs: number;
}

export interface AgentReaderOptions {
  readonly hypervisor: Pick<Hypervisor, 'get' | 'list' | 'onChange' | 'askAgent'>;
  readonly clock: Clock;
  readonly log: Log;
}

const CONCURRENCY = 8;
const AGAIN = { firstMs: 2000, maxMs: 60_000 };

export class AgentReader {
  readonly #options: AgentReaderOptions;
  readonly #pages = new Map<string, Page>();
  readonly #queue: WorkQueue;
  readonly #listeners = new Set<(id: string) => void>();
  readonly #leave: () => void;

  constructor(options: AgentReaderOptions) {
    this.#options = options;
    const { hypervisor, clock, log } = options;
    this.#queue = new WorkQueue({
      clock,
      concurrency: CONCURRENCY,
      backoff: AGAIN,
      work: (id) => this.#look(id),
      onError: (id, err) => log.warn({ err, domain: id }, 'Cannot ask a guest agent; trying again'),
    });
    this.#leave = hypervisor.onChange((id) => this.#queue.add(id));
    for (const { id } of hypervisor.list()) this.#queue.add(id);
  }

  /** Undefined while its agent is not connected, or has not answered yet. */
  get(id: string): AgentNews | undefined {
    return this.#pages.get(id)?.news;
  }

  onChange(listener: (id: string) => void): void {
    this.#listeners.add(listener);
  }

  idle(): Promise<void> {
    return this.#queue.idle();
  }

  async stop(): Promise<void> {
    this.#leave();
    this.#listeners.clear();
    await this.#queue.shutdown();
  }

  async #look(id: string): Promise<WorkResult> {
    const { hypervisor, clock } = this.#options;
    const domain = hypervisor.get(id);
    if (domain?.agent !== 'connected') {
      if (this.#pages.delete(id)) this.#tell(id);
      return {};
    }
    let page = this.#pages.get(id);
    if (page?.startedAtMs !== domain.startedAtMs) {
      page = { startedAtMs: domain.startedAtMs, idle: 0, dueAtMs: 0 };
      this.#pages.set(id, page);
    }
    // A guest that stands still, or may not write, answers nothing; it is told when that is over.
    if (domain.current.state !== 'running' || domain.frozenUntilMs !== undefined) return {};
    const waitMs = page.dueAtMs - clock.elapsed();
    if (waitMs > 0) return { afterMs: waitMs };
    const news = await this.#read(id);
    const isNews = news !== undefined && !deepEqual(news, page.news);
    page.idle = isNews ? 0 : page.idle + 1;
    const afterMs = backoffMs(page.idle + 1, AGAIN);
    page.dueAtMs = clock.elapsed() + afterMs;
    if (isNews) {
      page.news = news;
      this.#tell(id);
    }
    return { afterMs };
  }

  /** Undefined where it does not answer; one that is busy is asked again later. */
  async #read(id: string): Promise<AgentNews | undefined> {
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

  #tell(id: string): void {
    for (const listener of this.#listeners) listener(id);
  }
}
