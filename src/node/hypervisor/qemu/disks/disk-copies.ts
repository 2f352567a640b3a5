/**
 * The copies of one domain's disks and their outcomes. QEMU makes the copies (copy-jobs.ts); what must be known after
 * QEMU's end is in the domain record.
 *
 *   recorded ──► QEMU runs the job ──► the job concluded ──► file complete, outcome recorded ──endCopy──► forgotten
 *        │ QEMU has no job: not started          └────────── the guest ends before: failed
 *
 * `done` is reported only after QEMU has flushed and closed the file.
 */
import type { Clock } from '#lib/clock.ts';
import { HypervisorError, type CopyState, type DiskCopy } from '#node/hypervisor/hypervisor.ts';
import { copyName, formatNodeName } from '#node/hypervisor/qemu/arguments/block-nodes.ts';
import {
  addTarget,
  clearCopy,
  closeTarget,
  isQemuRefusal,
  readBlockJobs,
  startJobs,
  type JobInfo,
} from '#node/hypervisor/qemu/disks/copy-jobs.ts';
import { checkFreeSpace, copySpaceBytes } from '#node/hypervisor/qemu/disks/copy-space.ts';
import { readMedium } from '#node/hypervisor/qemu/disks/disk-size.ts';
import type { CopyRecord } from '#node/hypervisor/qemu/record/domain-record.ts';
import type { QmpClient } from '#node/hypervisor/qemu/monitor/qmp.ts';

/** Far more than the number of a guest's disks. */
const MAX_COPIES = 256;

interface DiskCopiesParts {
  readonly clock: Clock;
  /** Bandwidth of each copy; undefined for unlimited. */
  readonly bytesPerSecond: number | undefined;
  readonly hasEnded: () => boolean;
  /** Rejects if QEMU cannot be reached or refuses. */
  readonly withQmp: <T>(verb: string, work: (qmp: QmpClient) => Promise<T>) => Promise<T>;
  /** Returns a path by which QEMU can open the file, until releasePath. */
  readonly pathOf: (copyId: string, path: string) => Promise<string>;
  readonly releasePath: (copyId: string) => Promise<void>;
  /** Called when a copy failed or was cancelled, which may have failed a write of the guest. */
  readonly onFailure: () => Promise<void>;
  readonly records: () => readonly CopyRecord[];
  /** The records are on disk when it resolves. */
  readonly write: (records: readonly CopyRecord[]) => Promise<void>;
}

export class DiskCopies {
  readonly #parts: DiskCopiesParts;
  /** Serializes the steps of all copies. */
  #queue: Promise<unknown> = Promise.resolve();

  constructor(parts: DiskCopiesParts) {
    this.#parts = parts;
  }

  start(copies: readonly DiskCopy[]): Promise<void> {
    return this.#enqueue(() => this.#start(copies));
  }

  state(copyId: string): Promise<CopyState | undefined> {
    return this.#enqueue(() => this.#state(copyId));
  }

  end(copyId: string): Promise<void> {
    return this.#enqueue(async () => {
      const { hasEnded, withQmp, clock, releasePath, onFailure } = this.#parts;
      const record = this.#find(copyId);
      if (record === undefined) return;
      if (!hasEnded()) {
        await withQmp('end a copy of', (qmp) => clearCopy(qmp, clock, copyId));
        // The copy may have failed since the last query, and there will be no further query.
        if (record.outcome === undefined) await onFailure();
      }
      await releasePath(copyId);
      await this.#forget([copyId]);
    });
  }

  async #start(copies: readonly DiskCopy[]): Promise<void> {
    const { withQmp, clock, bytesPerSecond, pathOf, records, write } = this.#parts;
    const ids = copies.map(({ copyId }) => copyId);
    if (this.#parts.hasEnded() && ids.every((id) => this.#find(id) !== undefined)) return;
    await withQmp('copy disks of', async (qmp) => {
      const jobs = await readBlockJobs(qmp);
      const existing = ids.filter((id) => this.#hasStarted(id, jobs));
      if (existing.length === ids.length) return;
      if (existing.length > 0)
        throw new HypervisorError(`copy "${existing[0]}" exists already, others of the set do not`);
      if (records().length + ids.length > MAX_COPIES)
        throw new HypervisorError(
          `the domain has ${records().length} copies already; at most ${MAX_COPIES} are possible`,
        );
      const media = await Promise.all(copies.map(({ deviceId }) => readMedium(qmp, deviceId)));
      await checkFreeSpace(copies.map(({ path }, i) => ({ path, bytes: copySpaceBytes(media[i]!) })));
      // Recorded before the start: a job without a record would run forever.
      await write([...records().filter(({ copyId }) => !ids.includes(copyId)), ...copies]);
      try {
        for (const [i, { copyId, path }] of copies.entries()) {
          await clearCopy(qmp, clock, copyId);
          await addTarget(qmp, clock, { copyId, filename: await pathOf(copyId, path), bytes: media[i]!.bytes });
        }
        const newJobs = copies.map(({ copyId, deviceId }) => ({ copyId, source: formatNodeName(deviceId) }));
        await startJobs(qmp, newJobs, { bytesPerSecond });
      } catch (error) {
        // If it is unknown whether QEMU started them, the next query of its jobs tells.
        if (isQemuRefusal(error)) await this.#undo(qmp, ids);
        throw error;
      }
    });
  }

  async #state(copyId: string): Promise<CopyState | undefined> {
    const { hasEnded, withQmp } = this.#parts;
    const record = this.#find(copyId);
    if (record === undefined || record.outcome !== undefined) return record?.outcome;
    if (hasEnded()) return { state: 'failed', message: 'the guest ended before the copy was complete' };
    return withQmp('read the state of a copy of', async (qmp) => {
      const job = (await readBlockJobs(qmp)).get(copyName(copyId));
      if (job === undefined) return undefined;
      if (job.status !== 'concluded') {
        return { state: 'copying', doneBytes: job['current-progress'], totalBytes: job['total-progress'] };
      }
      const outcome = await this.#conclude(qmp, copyId, job);
      await this.#parts.write(this.#parts.records().map((one) => (one.copyId === copyId ? { ...one, outcome } : one)));
      return outcome;
    });
  }

  async #conclude(qmp: QmpClient, copyId: string, { error }: JobInfo): Promise<NonNullable<CopyRecord['outcome']>> {
    const { releasePath, onFailure } = this.#parts;
    try {
      if (error !== undefined) throw new HypervisorError(error);
      await closeTarget(qmp, copyId);
      await releasePath(copyId);
      return { state: 'done' };
    } catch (cause) {
      if (!isQemuRefusal(cause)) throw cause;
      await onFailure();
      return { state: 'failed', message: (cause as Error).message };
    }
  }

  #hasStarted(copyId: string, jobs: ReadonlyMap<string, JobInfo>): boolean {
    const record = this.#find(copyId);
    return record !== undefined && (record.outcome !== undefined || jobs.has(copyName(copyId)));
  }

  /** Undoes a failed start. What cannot be removed now is removed at the next start or end of the copies. */
  async #undo(qmp: QmpClient, ids: readonly string[]): Promise<void> {
    try {
      for (const id of ids) {
        await clearCopy(qmp, this.#parts.clock, id);
        await this.#parts.releasePath(id);
      }
      await this.#forget(ids);
    } catch {
      // The caller reports why the copies could not start.
    }
  }

  #find(copyId: string): CopyRecord | undefined {
    return this.#parts.records().find((record) => record.copyId === copyId);
  }

  async #forget(ids: readonly string[]): Promise<void> {
    await this.#parts.write(this.#parts.records().filter(({ copyId }) => !ids.includes(copyId)));
  }

  #enqueue<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => undefined);
    return done;
  }
}
