/**
 * The last reading of the devices of each domain. The instance's status reports hash and revision of a reading, `list` of
 * the host API also the devices. A failed reading is repeated later; until then the previous one stays valid. Readings are
 * kept in memory only: a new agent reads each domain once.
 */
import { deviceHash } from '#api/devices/device-hash.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { backoffMs } from '#lib/backoff.ts';
import type { Clock } from '#lib/clock.ts';
import type { DomainInfo, Hypervisor } from '#node/hypervisor/hypervisor.ts';

export interface DomainDeviceReading {
  readonly devices: readonly LearnedDevice[];
  readonly hash: string;
  /** Increases whenever the hash changes, also across restarts of the agent. */
  readonly revision: number;
}

/** Hash and revision of the last reading in the instance's status, possibly of an earlier process. */
type LastReported = Partial<Pick<DomainDeviceReading, 'hash' | 'revision'>>;

interface ReadingState {
  reading?: DomainDeviceReading;
  /** Domain.startedAtMs and Domain.deviceEvents at the time of the reading. */
  startedAtMs?: number;
  deviceEvents?: number;
  failures: number;
  /** Number of consecutive readings without a change. */
  unchangedReads: number;
  /** Time of the next reading, by Clock.elapsed. */
  dueAtMs: number;
}

const FAILURE_BACKOFF = { firstMs: 100, maxMs: 10_000 };
/** Limits readings, because a guest can cause device events at any rate, for example by moving the tray of a drive. */
const UNCHANGED_BACKOFF = { firstMs: 100, maxMs: 2000 };

export class DeviceReadings {
  readonly #states = new Map<string, ReadingState>();
  readonly #hypervisor: Pick<Hypervisor, 'get' | 'learn'>;
  readonly #clock: Clock;

  constructor({ hypervisor, clock }: { hypervisor: Pick<Hypervisor, 'get' | 'learn'>; clock: Clock }) {
    this.#hypervisor = hypervisor;
    this.#clock = clock;
  }

  get(id: string): DomainDeviceReading | undefined {
    return this.#states.get(id)?.reading;
  }

  /** Returns the time of the next reading, by Clock.elapsed, or undefined while the last reading is current. */
  dueAtMs({ id, startedAtMs, deviceEvents, current }: DomainInfo): number | undefined {
    const state = this.#states.get(id);
    if (current.state === 'ended') return undefined;
    if (state === undefined) return 0;
    const isCurrent = state.startedAtMs === startedAtMs && state.deviceEvents === deviceEvents;
    return isCurrent ? undefined : state.dueAtMs;
  }

  /** Reads the devices of a domain. Throws if the hypervisor fails; the reading is then due again later. */
  async read(id: string, reported: LastReported = {}): Promise<void> {
    const state = this.#state(id);
    // Taken before the reading, so that changes during the reading make another one due.
    const domain = this.#hypervisor.get(id);
    let devices: readonly LearnedDevice[];
    try {
      devices = await this.#hypervisor.learn(id);
    } catch (error) {
      state.failures++;
      state.dueAtMs = this.#clock.elapsed() + backoffMs(state.failures, FAILURE_BACKOFF);
      throw error;
    }
    const before = state.reading;
    state.reading = this.#reading(devices, before ?? reported);
    const unchangedReads = state.reading.hash === before?.hash ? state.unchangedReads + 1 : 0;
    const dueAtMs = unchangedReads === 0 ? 0 : this.#clock.elapsed() + backoffMs(unchangedReads, UNCHANGED_BACKOFF);
    Object.assign(state, { failures: 0, unchangedReads, dueAtMs });
    Object.assign(state, { startedAtMs: domain?.startedAtMs, deviceEvents: domain?.deviceEvents });
  }

  /** Forgets a removed domain. */
  forget(id: string): void {
    this.#states.delete(id);
  }

  #reading(
    devices: readonly LearnedDevice[],
    { hash: lastHash, revision: last = 0 }: LastReported,
  ): DomainDeviceReading {
    const hash = deviceHash(devices);
    // Equal devices keep their revision, also across processes.
    const revision = hash === lastHash && last > 0 ? last : Math.max(this.#clock.now(), last + 1);
    return { devices, hash, revision };
  }

  #state(id: string): ReadingState {
    let state = this.#states.get(id);
    if (state === undefined) this.#states.set(id, (state = { failures: 0, unchangedReads: 0, dueAtMs: 0 }));
    return state;
  }
}
