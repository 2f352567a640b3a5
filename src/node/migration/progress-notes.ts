/** How far an outgoing migration is, as it is told in the status of the instance: at most once a second within a phase. */
import type { MigrationProgress } from '#api/migration-state.ts';
import { timestamp, type Clock } from '#lib/clock.ts';
import type { SendProgress } from '#node/hypervisor/migration.ts';

const EVERY_MS = 1000;
/** What a hypervisor has to say may be long. */
const MAX_MESSAGE = 1024;

export class ProgressNotes {
  readonly #clock: Clock;
  readonly #onChange: () => void;
  #latest: MigrationProgress;
  #told: MigrationProgress;
  #toldAtMs: number;
  #stopTimer = () => {};

  constructor(migrationUid: string, { clock, onChange }: { clock: Clock; onChange: () => void }) {
    this.#clock = clock;
    this.#onChange = onChange;
    const startTimestamp = timestamp(clock.now());
    this.#latest = this.#told = { migrationUid, phase: 'Connecting', startTimestamp };
    this.#toldAtMs = clock.elapsed();
  }

  /** What is to be told. */
  get told(): MigrationProgress {
    return this.#told;
  }

  /** That it connects is worth a word only where that takes a while. */
  startTelling(): void {
    this.#stopTimer = this.#clock.after(EVERY_MS, () => this.#tell());
  }

  enter(phase: MigrationProgress['phase'], more: Partial<MigrationProgress> = {}): void {
    const isEnd = phase === 'Committed' || phase === 'Failed';
    const endTimestamp = isEnd ? { endTimestamp: timestamp(this.#clock.now()) } : {};
    const { message, ...rest } = more;
    const why = message === undefined ? {} : { message: message.slice(0, MAX_MESSAGE) };
    this.#latest = { ...this.#latest, phase, ...endTimestamp, ...rest, ...why };
    this.#tell();
  }

  copied({ processedBytes, remainingBytes, totalBytes, bytesPerSecond, memoryRounds }: SendProgress): void {
    this.#latest = {
      ...this.#latest,
      dataTotalBytes: totalBytes,
      dataProcessedBytes: processedBytes,
      dataRemainingBytes: remainingBytes,
      bytesPerSecond: Math.round(bytesPerSecond),
      memoryRounds,
    };
    if (this.#clock.elapsed() - this.#toldAtMs >= EVERY_MS) this.#tell();
  }

  #tell(): void {
    this.#stopTimer();
    this.#told = this.#latest;
    this.#toldAtMs = this.#clock.elapsed();
    this.#onChange();
  }
}
