/** The progress of an outgoing migration for the instance's status. Within a phase it changes at most once a second. */
import type { MigrationProgress } from '#api/migration/migration-state.ts';
import { timestamp, type Clock } from '#lib/clock.ts';
import type { SendProgress } from '#node/hypervisor/migration.ts';

const REPORT_INTERVAL_MS = 1000;
/** Messages of the hypervisor may be long. */
const MAX_MESSAGE_LENGTH = 1024;

export class ProgressReporter {
  readonly #clock: Clock;
  readonly #onChange: () => void;
  #latest: MigrationProgress;
  #reported: MigrationProgress;
  #reportedAtMs: number;
  #stopTimer = () => {};

  constructor(migrationUid: string, { clock, onChange }: { clock: Clock; onChange: () => void }) {
    this.#clock = clock;
    this.#onChange = onChange;
    const startTimestamp = timestamp(clock.now());
    this.#latest = this.#reported = { migrationUid, phase: 'Connecting', startTimestamp };
    this.#reportedAtMs = clock.elapsed();
  }

  /** The progress to report. */
  get reported(): MigrationProgress {
    return this.#reported;
  }

  /** Reports the phase Connecting if it takes longer than a second. */
  startReporting(): void {
    this.#stopTimer = this.#clock.after(REPORT_INTERVAL_MS, () => this.#report());
  }

  enter(phase: MigrationProgress['phase'], more: Partial<MigrationProgress> = {}): void {
    const isEnd = phase === 'Committed' || phase === 'Failed';
    const endTimestamp = isEnd ? { endTimestamp: timestamp(this.#clock.now()) } : {};
    const { message, ...rest } = more;
    const why = message === undefined ? {} : { message: message.slice(0, MAX_MESSAGE_LENGTH) };
    this.#latest = { ...this.#latest, phase, ...endTimestamp, ...rest, ...why };
    this.#report();
  }

  recordCopied({ processedBytes, remainingBytes, totalBytes, bytesPerSecond, memoryRounds }: SendProgress): void {
    this.#latest = {
      ...this.#latest,
      dataTotalBytes: totalBytes,
      dataProcessedBytes: processedBytes,
      dataRemainingBytes: remainingBytes,
      bytesPerSecond: Math.round(bytesPerSecond),
      memoryRounds,
    };
    if (this.#clock.elapsed() - this.#reportedAtMs >= REPORT_INTERVAL_MS) this.#report();
  }

  #report(): void {
    this.#stopTimer();
    this.#reported = this.#latest;
    this.#reportedAtMs = this.#clock.elapsed();
    this.#onChange();
  }
}
