/**
 * The audit log: records in, lines in a file out. Taking a record is an append to a list. Lines are made of them when
 * the requests of this turn of the event loop have been answered, and written in batches, so that no request waits.
 *
 *   take ──► records ──► lines (both bounded; what does not fit is counted) ──► batch ──► file
 *                                                                  └─ fails ─► the same batch again, a little later
 *
 * A batch is in the hands of the system when it is written, not on the disk: a killed process loses what was queued for
 * FLUSH_MS at most, a machine without power what the system had not written yet.
 */
import type { AuditRecord, AuditSink } from '#engine/audit/audit-record.ts';
import { formatEvent } from '#engine/audit/format-event.ts';
import { backoffMs } from '#lib/backoff.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';

export interface AuditLogOptions {
  readonly file: { append(bytes: Buffer): Promise<void>; close(): Promise<void> };
  readonly clock: Clock;
  readonly log: Log;
  readonly maxQueued?: number;
  readonly maxQueuedBytes?: number;
}

const FLUSH_MS = 100;
const MAX_QUEUED = 16_384;
/** Whoever asks decides how long a line gets, by the address and what policies note: usual ones have a kilobyte. */
const MAX_QUEUED_BYTES = 32 * 1024 * 1024;
/** So many lines take less than a millisecond to make. */
const LINES_PER_TURN = 200;
const BATCH_BYTES = 256 * 1024;
const RETRY = { firstMs: 500, maxMs: 30_000 };

interface Lines {
  readonly bytes: Buffer;
  readonly count: number;
}

export class AuditLog {
  readonly #options: AuditLogOptions;
  readonly #maxQueued: number;
  readonly #maxQueuedBytes: number;
  #records: AuditRecord[] = [];
  /** Bytes, not texts: they wait outside of the heap, where collecting garbage does not move them. */
  #lines: Lines[] = [];
  #lineCount = 0;
  #lineBytes = 0;
  #isFormatting = false;
  /** How many did not fit right before a record. */
  readonly #gaps = new Map<AuditRecord, number>();
  #gap = 0;
  #batch: Lines | undefined;
  #draining: Promise<void> | undefined;
  #cancelTimer: (() => void) | undefined;
  #failures = 0;
  #written = 0;
  #dropped = 0;

  constructor(options: AuditLogOptions) {
    this.#options = options;
    this.#maxQueued = options.maxQueued ?? MAX_QUEUED;
    this.#maxQueuedBytes = options.maxQueuedBytes ?? MAX_QUEUED_BYTES;
  }

  readonly take: AuditSink = (record) => {
    if (this.#queued >= this.#maxQueued || this.#lineBytes >= this.#maxQueuedBytes) {
      this.#gap++;
      this.#dropped++;
      return;
    }
    if (this.#gap > 0) {
      this.#gaps.set(record, this.#gap);
      this.#gap = 0;
    }
    this.#records.push(record);
    this.#formatSoon();
    this.#wake(FLUSH_MS);
  };

  /** Everything that was taken is written, or cannot be for now. */
  async flush(): Promise<void> {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    await (this.#draining ??= this.#drain().finally(() => this.#drained()));
  }

  /** Call when nothing is taken any more. */
  async close(): Promise<void> {
    await this.#draining;
    await this.flush();
    this.#cancelTimer?.();
    await this.#options.file.close();
    const lost = this.#queued + this.#gap;
    if (lost > 0) this.#options.log.error({ lost }, 'Cannot write the end of the audit log');
  }

  metricsText(): string {
    const counters: readonly [string, string, string, number][] = [
      ['apiserver_audit_event_total', 'counter', 'Lines of the audit log.', this.#written],
      ['selfsame_audit_dropped_total', 'counter', 'Requests that the audit log could not keep.', this.#dropped],
      ['selfsame_audit_queued', 'gauge', 'Requests that wait for the audit log.', this.#queued],
      ['selfsame_audit_writable', 'gauge', '1 while the audit log can be written.', this.#failures === 0 ? 1 : 0],
    ];
    return counters
      .map(([name, type, help, value]) => `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${name} ${value}\n`)
      .join('');
  }

  #wake(ms: number): void {
    if (this.#cancelTimer !== undefined || this.#draining !== undefined) return;
    this.#cancelTimer = this.#options.clock.after(ms, () => void this.flush());
  }

  async #drain(): Promise<void> {
    for (;;) {
      const batch = (this.#batch ??= this.#nextBatch());
      if (batch === undefined) return;
      try {
        await this.#options.file.append(batch.bytes);
      } catch (error) {
        this.#failed(error);
        return;
      }
      this.#batch = undefined;
      this.#written += batch.count;
      if (this.#failures > 0) this.#options.log.warn({ dropped: this.#dropped }, 'the audit log is written again');
      this.#failures = 0;
    }
  }

  #drained(): void {
    this.#draining = undefined;
    // What came in the very moment of the end.
    if (this.#queued > 0) this.#wake(FLUSH_MS);
  }

  get #queued(): number {
    return this.#records.length + this.#lineCount + (this.#batch?.count ?? 0);
  }

  #formatSoon(): void {
    if (this.#isFormatting) return;
    this.#isFormatting = true;
    setImmediate(() => {
      this.#isFormatting = false;
      this.#format();
      if (this.#records.length > 0) this.#formatSoon();
    });
  }

  /** Soon, because a record that lives long is moved about by the garbage collector, which costs more than its line. */
  #format(): void {
    const records = this.#records.splice(0, LINES_PER_TURN);
    if (records.length === 0) return;
    const lines = records.flatMap((record) => this.#lineOf(record));
    const bytes = Buffer.from(lines.join(''));
    this.#lines.push({ bytes, count: lines.length });
    this.#lineCount += lines.length;
    this.#lineBytes += bytes.length;
  }

  /** Whatever is in a record, it must not end the server. */
  #lineOf(record: AuditRecord): string | [] {
    const gap = this.#takeGap(record);
    try {
      return formatEvent(record, gap);
    } catch (error) {
      this.#gap += gap + 1;
      this.#dropped++;
      this.#options.log.error({ err: error }, 'Cannot tell of a request in the audit log');
      return [];
    }
  }

  #nextBatch(): Lines | undefined {
    if (this.#lines.length === 0) this.#format();
    const parts: Buffer[] = [];
    let [bytes, count] = [0, 0];
    for (const lines of this.#lines) {
      if (bytes >= BATCH_BYTES) break;
      parts.push(lines.bytes);
      bytes += lines.bytes.length;
      count += lines.count;
    }
    this.#lines.splice(0, parts.length);
    this.#lineCount -= count;
    this.#lineBytes -= bytes;
    return count === 0 ? undefined : { bytes: Buffer.concat(parts, bytes), count };
  }

  #takeGap(record: AuditRecord): number {
    if (this.#gaps.size === 0) return 0;
    const gap = this.#gaps.get(record) ?? 0;
    this.#gaps.delete(record);
    return gap;
  }

  /** Told once; requests go on, because a full disk must not keep anybody from making room. */
  #failed(error: unknown): void {
    this.#failures++;
    if (this.#failures === 1) this.#options.log.error({ err: error }, 'Cannot write the audit log; trying again');
    this.#cancelTimer = this.#options.clock.after(backoffMs(this.#failures, RETRY), () => void this.flush());
  }
}
