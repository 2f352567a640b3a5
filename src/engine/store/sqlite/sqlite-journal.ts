/**
 * The journal in an SQLite file. This side packs and unpacks records; a worker thread does the rest (worker.ts). If a
 * worker ends, its pending requests fail and the next append starts another worker.
 */
import { writeFile } from 'node:fs/promises';
import { Worker } from 'node:worker_threads';
import { invariant, unreachable } from '#lib/invariant.ts';
import { DiskReserve } from '#engine/store/sqlite/disk-reserve.ts';
import type { Journal, LogRecord } from '#engine/store/journal.ts';
import { StoreDamagedError, StoreFullError, StoreUnavailableError } from '#engine/store/store.ts';
import type { Reply, Request, WorkerSetup } from '#engine/store/sqlite/protocol.ts';
import { pack, maxPackedBytes, typeNumber, unpackRecords } from '#engine/store/sqlite/record-codec.ts';

/** Batches and chunks up to this size share one block of memory; larger ones get a block of their own. */
const SHARED_BYTES = 1024 * 1024;

interface PendingReply {
  resolve(reply: Reply): void;
  reject(error: Error): void;
}

export class SqliteJournal implements Journal {
  readonly name: string;
  readonly #shared = new SharedArrayBuffer(SHARED_BYTES);
  readonly #waiting: PendingReply[] = [];
  #worker: Worker | undefined;
  #exited: Promise<void> = Promise.resolve();
  #lastAppended = 0;
  #closed: Promise<void> | undefined;

  readonly #reserve: DiskReserve;

  constructor(file: string) {
    this.name = file;
    this.#reserve = new DiskReserve(`${file}-reserve`);
  }

  get isSpaceScarce(): boolean {
    return this.#reserve.isScarce;
  }

  async open(): Promise<{ compactedRevision: number }> {
    const reply = await this.#request({ kind: 'open' });
    invariant(reply.kind === 'opened', 'the reply to open is opened');
    this.#lastAppended = reply.compactedRevision;
    this.#reserve.start();
    return { compactedRevision: reply.compactedRevision };
  }

  async *records(): AsyncIterable<readonly LogRecord[]> {
    let next = this.#request({ kind: 'read' });
    for (;;) {
      const reply = await next;
      if (reply.kind !== 'chunk') return;
      // The worker reads ahead while this chunk is unpacked. The next iteration sees its failure.
      next = this.#request({ kind: 'read' });
      next.catch(() => {});
      const records = unpackRecords(Buffer.from(reply.packed ?? this.#shared, reply.offset, reply.length));
      this.#lastAppended = Math.max(this.#lastAppended, records[records.length - 1]!.entry.revision);
      yield records;
    }
  }

  async append(batch: readonly LogRecord[]): Promise<void> {
    let room = 0;
    for (const { entry } of batch)
      room += maxPackedBytes({ collection: entry.collection, id: entry.id, value: entry.bytes });
    const packed = room > SHARED_BYTES ? new SharedArrayBuffer(room) : undefined;
    const length = packBatch(Buffer.from(packed ?? this.#shared), batch);
    const last = batch[batch.length - 1]!.entry.revision;
    const request = { kind: 'append', length, after: this.#lastAppended, last, packed } as const;
    try {
      await this.#request(request);
    } catch (error) {
      if (!(error instanceof StoreFullError)) throw error;
      // The reserve is for deletions. Others in the same batch fail with it.
      this.#reserve.release();
      if (!batch.every(({ isUrgent }) => isUrgent === true)) throw error;
      await this.#request(request);
    }
    this.#lastAppended = last;
  }

  async compact(revision: number, removable: readonly number[]): Promise<void> {
    await this.#request({ kind: 'compact', revision, removable: Float64Array.from(removable) });
  }

  /** For tests: makes SQLite report a full disk when the file would need more pages; 0 lifts the limit. */
  async limitPages(pages: number): Promise<void> {
    await this.#request({ kind: 'limit', pages });
    await this.#reserve.check();
  }

  /** Copies all acknowledged data into a store file. Writes wait meanwhile. */
  async copyTo(file: string): Promise<void> {
    await writeFile(file, '', { flag: 'wx', mode: 0o600 });
    await this.#request({ kind: 'copy', to: file });
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    await this.#reserve.stop();
    if (!this.#worker) return;
    await this.#request({ kind: 'close' });
    await this.#exited;
  }

  async #request(request: Request): Promise<Reply> {
    this.#worker ??= this.#start();
    this.#worker.postMessage(request);
    const reply = await new Promise<Reply>((resolve, reject) => this.#waiting.push({ resolve, reject }));
    if (reply.kind !== 'failed') return reply;
    throw toStoreError(reply);
  }

  #start(): Worker {
    const setup: WorkerSetup = { file: this.name, shared: this.#shared };
    const worker = new Worker(new URL('./worker.ts', import.meta.url), { name: 'store', workerData: setup });
    worker.on('message', (reply: Reply) => this.#waiting.shift()!.resolve(reply));
    let cause: unknown;
    worker.on('error', (error) => (cause = error));
    this.#exited = new Promise((resolve) => {
      worker.on('exit', () => {
        this.#worker = undefined;
        const error = new StoreUnavailableError(`Cannot write to ${this.name}: its worker thread ended`, { cause });
        for (const { reject } of this.#waiting.splice(0)) reject(error);
        resolve();
      });
    });
    return worker;
  }
}

function toStoreError({ why, message }: Extract<Reply, { kind: 'failed' }>): Error {
  switch (why) {
    case 'damaged':
      return new StoreDamagedError(message);
    case 'full':
      return new StoreFullError(message);
    case 'unavailable':
      return new StoreUnavailableError(message);
    default:
      return unreachable(why);
  }
}

/** Returns the number of bytes written. */
function packBatch(target: Buffer, batch: readonly LogRecord[]): number {
  let length = 0;
  for (const { type, entry } of batch) {
    const { collection, id, revision, bytes } = entry;
    length = pack(target, length, { revision, collection, id, type: typeNumber(type), value: bytes });
  }
  return length;
}
