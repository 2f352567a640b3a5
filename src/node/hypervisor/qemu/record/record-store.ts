/** The current record of one domain, in memory and in domain.json. */
import type { DomainDir } from '#node/hypervisor/qemu/record/domain-dir.ts';
import type { DomainRecord, StartedProcesses } from '#node/hypervisor/qemu/record/domain-record.ts';

export type StartedRecord = DomainRecord & { readonly started: StartedProcesses };
type RecordChange = Partial<Pick<DomainRecord, 'ended' | 'copies' | 'definition' | 'migration' | 'frozen'>>;

export class RecordStore {
  readonly #dir: DomainDir;
  #current: StartedRecord;
  #writing: Promise<void> = Promise.resolve();

  constructor(dir: DomainDir, record: StartedRecord) {
    this.#dir = dir;
    this.#current = record;
  }

  get current(): StartedRecord {
    return this.#current;
  }

  /**
   * Changes the record and writes it as a whole, one write at a time, so that no change is lost. On disk when it
   * resolves.
   */
  write(change: RecordChange): Promise<void> {
    this.setInMemory(change);
    const written = this.#writing.then(() => this.#dir.writeRecord(this.#current, { durable: true }));
    this.#writing = written.catch(() => undefined);
    return written;
  }

  /** Changes the record in memory only. */
  setInMemory(change: RecordChange): void {
    this.#current = { ...this.#current, ...change };
  }
}
