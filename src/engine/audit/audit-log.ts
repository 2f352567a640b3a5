/**
 * The audit log: writes records as lines to a file. Adding a record appends it to a list. Lines are formatted after the
 * requests of this turn of the event loop were answered, and written in batches, so that no request waits.
 *
 *   add ──► records ──► lines (both bounded; dropped records are counted) ──► batch ──► file
 *                                                                └─ fails ─► the same batch again, later
 *
 * A written batch is in the page cache, not on disk: a killed process loses at most the records of FLUSH_MS, a power
 * failure also what the system had not written yet.
 */
import type { AuditRecord, AuditSink } from '#engine/audit/audit-record.ts';
import { formatEvent } from '#engine/audit/format-event.ts';
import { backoffMs } from '#lib/backoff.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import type { MetricRegistry } from '#lib/metrics/metric-registry.ts';

interface AuditLogOptions {
  readonly file: { append(bytes: Buffer): Promise<void>; close(): Promise<void> };
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: MetricRegistry;
  readonly maxQueued?: number;
  readonly maxQueuedBytes?: number;
}

const FLUSH_MS = 100;
const MAX_QUEUED = 16_384;
/** Clients influence the length of a line by the URL and by policy annotations; usual lines have a kilobyte. */
const MAX_QUEUED_BYTES = 32 * 1024 * 1024;
/** Formatting this many lines takes less than a millisecond. */
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
  /** Buffers instead of strings: they are outside of the heap, where garbage collection does not move them. */
  #lines: Lines[] = [];
  #lineCount = 0;
  #lineBytes = 0;
  #isFormatting = false;
  /** Number of records dropped immediately before a record. */
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
    this.#addMetrics(options.metrics);
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

  /** Waits until everything is written, or cannot be written for now. */
  async flush(): Promise<void> {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    await (this.#draining ??= this.#drain().finally(() => this.#drained()));
  }

  /** Must be called after the last record. */
  async close(): Promise<void> {
    await this.#draining;
    await this.flush();
    this.#cancelTimer?.();
    await this.#options.file.close();
    const lost = this.#queued + this.#gap;
    if (lost > 0) this.#options.log.error({ lost }, 'Cannot write the end of the audit log');
  }

  #addMetrics(metrics: MetricRegistry): void {
    const [written, dropped] = ['apiserver_audit_event_total', 'selfsame_audit_dropped_total'];
    metrics.counterFunc({ name: written, help: 'Number of audit events written.' }, () => this.#written);
    metrics.counterFunc({ name: dropped, help: 'Number of requests dropped from the audit log.' }, () => this.#dropped);
    const [queued, writable] = ['selfsame_audit_queued', 'selfsame_audit_writable'];
    metrics.gaugeFunc(
      { name: queued, help: 'Number of requests waiting to be written to the audit log.' },
      () => this.#queued,
    );
    metrics.gaugeFunc({ name: writable, help: 'Whether the audit log can be written (1) or not (0).' }, () =>
      this.#failures === 0 ? 1 : 0,
    );
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
      if (this.#failures > 0) this.#options.log.warn({ dropped: this.#dropped }, 'The audit log can be written again');
      this.#failures = 0;
    }
  }

  #drained(): void {
    this.#draining = undefined;
    // Records that were added at the end of the drain.
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

  /** Formats soon, because a long-lived record is moved by the garbage collector, which costs more than its line. */
  #format(): void {
    const records = this.#records.splice(0, LINES_PER_TURN);
    if (records.length === 0) return;
    const lines = records.flatMap((record) => this.#lineOf(record));
    const bytes = Buffer.from(lines.join(''));
    this.#lines.push({ bytes, count: lines.length });
    this.#lineCount += lines.length;
    this.#lineBytes += bytes.length;
  }

  /** No record may end the server. */
  #lineOf(record: AuditRecord): string | [] {
    const gap = this.#takeGap(record);
    try {
      return formatEvent(record, gap);
    } catch (error) {
      this.#gap += gap + 1;
      this.#dropped++;
      this.#options.log.error({ err: error }, 'Cannot format a request for the audit log');
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

  /** Logged once. Requests continue, because a full disk must not prevent users from freeing space. */
  #failed(error: unknown): void {
    this.#failures++;
    if (this.#failures === 1) this.#options.log.error({ err: error }, 'Cannot write the audit log; trying again');
    this.#cancelTimer = this.#options.clock.after(backoffMs(this.#failures, RETRY), () => void this.flush());
  }
}
