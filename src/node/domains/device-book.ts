/**
 * What this process last read of the devices of each domain. Hash, revision and devices of a reading belong together: the
 * status of the instance tells the first two, `list` of the host API all three. A reading that failed is due again after a
 * while; until there is a newer one, the last one stands. All of it may be forgotten: a new agent reads each domain once.
 */
import { deviceHash } from '#api/device-hash.ts';
import type { LearnedDevice } from '#api/learned-device.ts';
import { backoffMs } from '#lib/backoff.ts';
import type { Clock } from '#lib/clock.ts';
import type { Domain, Hypervisor } from '#node/hypervisor/hypervisor.ts';

export interface Reading {
  readonly devices: readonly LearnedDevice[];
  readonly hash: string;
  /** Rises whenever the hash changes, also over restarts of the agent. */
  readonly revision: number;
}

/** What others remember of the last reading, this process or not: the status of the instance. */
export type LastTold = Partial<Pick<Reading, 'hash' | 'revision'>>;

interface Page {
  reading?: Reading;
  /** What the domain was like when it was read. */
  startedAtMs?: number;
  deviceEvents?: number;
  failures: number;
  /** Readings one after the other that found nothing new. */
  idle: number;
  /** By Clock.elapsed. */
  dueAtMs: number;
}

const BACKOFF = { firstMs: 100, maxMs: 10_000 };
/** A guest can cause events as fast as it likes, by moving the tray of a drive, and would keep us reading. */
const IDLE = { firstMs: 100, maxMs: 2000 };

export class DeviceBook {
  readonly #pages = new Map<string, Page>();
  readonly #hypervisor: Pick<Hypervisor, 'get' | 'learn'>;
  readonly #clock: Clock;

  constructor({ hypervisor, clock }: { hypervisor: Pick<Hypervisor, 'get' | 'learn'>; clock: Clock }) {
    this.#hypervisor = hypervisor;
    this.#clock = clock;
  }

  get(id: string): Reading | undefined {
    return this.#pages.get(id)?.reading;
  }

  /** When the domain is to be read next, by Clock.elapsed; undefined while what is known of it is true. */
  dueAtMs({ id, startedAtMs, deviceEvents, current }: Domain): number | undefined {
    const page = this.#pages.get(id);
    if (current.state === 'ended') return undefined;
    if (page === undefined) return 0;
    const isCurrent = page.startedAtMs === startedAtMs && page.deviceEvents === deviceEvents;
    return isCurrent ? undefined : page.dueAtMs;
  }

  /** Throws where the hypervisor cannot tell; then it is due again after a while. */
  async read(id: string, told: LastTold = {}): Promise<void> {
    const page = this.#page(id);
    // Before it is asked: what happens meanwhile makes the answer an old one.
    const domain = this.#hypervisor.get(id);
    let devices: readonly LearnedDevice[];
    try {
      devices = await this.#hypervisor.learn(id);
    } catch (error) {
      page.failures++;
      page.dueAtMs = this.#clock.elapsed() + backoffMs(page.failures, BACKOFF);
      throw error;
    }
    const before = page.reading;
    page.reading = this.#reading(devices, before ?? told);
    const idle = page.reading.hash === before?.hash ? page.idle + 1 : 0;
    const dueAtMs = idle === 0 ? 0 : this.#clock.elapsed() + backoffMs(idle, IDLE);
    Object.assign(page, { failures: 0, idle, dueAtMs });
    Object.assign(page, { startedAtMs: domain?.startedAtMs, deviceEvents: domain?.deviceEvents });
  }

  /** The domain is no more. */
  forget(id: string): void {
    this.#pages.delete(id);
  }

  #reading(devices: readonly LearnedDevice[], { hash: lastHash, revision: last = 0 }: LastTold): Reading {
    const hash = deviceHash(devices);
    // What reads the same is no news, whoever reads it.
    const revision = hash === lastHash && last > 0 ? last : Math.max(this.#clock.now(), last + 1);
    return { devices, hash, revision };
  }

  #page(id: string): Page {
    let page = this.#pages.get(id);
    if (page === undefined) this.#pages.set(id, (page = { failures: 0, idle: 0, dueAtMs: 0 }));
    return page;
  }
}
