/**
 * The journal in an SQLite file: this side packs and unpacks records, a worker thread does the rest (worker.ts).
 * A worker that dies fails what it was asked; the next append starts another.
 */
import { writeFile } from 'node:fs/promises';
import { Worker } from 'node:worker_threads';
import { invariant } from '#lib/invariant.ts';
import type { Journal, LogRecord } from '../journal.ts';
import { StoreDamagedError, StoreUnavailableError } from '../store.ts';
import type { Reply, Request, WorkerSetup } from './protocol.ts';
import { pack, roomFor, typeNumber, unpackRecords } from './record-codec.ts';

/** Batches and chunks up to this size share one block of memory; larger ones get their own and give it back. */
const SHARED_BYTES = 1024 * 1024;

interface Waiting {
  resolve(reply: Reply): void;
  reject(error: Error): void;
}

export class SqliteJournal implements Journal {
  readonly name: string;
  readonly #shared = new SharedArrayBuffer(SHARED_BYTES);
  readonly #waiting: Waiting[] = [];
  #worker: Worker | undefined;
  #exited: Promise<void> = Promise.resolve();
  #lastAppended = 0;
  #closed: Promise<void> | undefined;

  constructor(file: string) {
    this.name = file;
  }

  async open(): Promise<{ compactedRevision: number }> {
    const reply = await this.#ask({ kind: 'open' });
    invariant(reply.kind === 'opened', 'open is answered by opened');
    this.#lastAppended = reply.compactedRevision;
    return { compactedRevision: reply.compactedRevision };
  }

  async *records(): AsyncIterable<readonly LogRecord[]> {
    let next = this.#ask({ kind: 'read' });
    for (;;) {
      const reply = await next;
      if (reply.kind !== 'chunk') return;
      // The worker reads on while this chunk is unpacked. Its failure is seen by the next turn, not before.
      next = this.#ask({ kind: 'read' });
      next.catch(() => {});
      const records = unpackRecords(Buffer.from(reply.packed ?? this.#shared, reply.offset, reply.length));
      this.#lastAppended = Math.max(this.#lastAppended, records[records.length - 1]!.entry.revision);
      yield records;
    }
  }

  async append(batch: readonly LogRecord[]): Promise<void> {
    let room = 0;
    for (const { entry } of batch) room += roomFor({ collection: entry.collection, id: entry.id, value: entry.bytes });
    const packed = room > SHARED_BYTES ? new SharedArrayBuffer(room) : undefined;
    const length = packBatch(Buffer.from(packed ?? this.#shared), batch);
    const last = batch[batch.length - 1]!.entry.revision;
    await this.#ask({ kind: 'append', length, after: this.#lastAppended, last, packed });
    this.#lastAppended = last;
  }

  async compact(revision: number, removable: readonly number[]): Promise<void> {
    await this.#ask({ kind: 'compact', revision, removable: Float64Array.from(removable) });
  }

  /** For tests: SQLite reports a full disk once the file would need more pages; 0 lifts it. */
  async limitPages(pages: number): Promise<void> {
    await this.#ask({ kind: 'limit', pages });
  }

  /** A whole copy of what is acknowledged, as a store file of its own. Writes wait meanwhile. */
  async copyTo(file: string): Promise<void> {
    await writeFile(file, '', { flag: 'wx', mode: 0o600 });
    await this.#ask({ kind: 'copy', to: file });
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    if (!this.#worker) return;
    await this.#ask({ kind: 'close' });
    await this.#exited;
  }

  async #ask(request: Request): Promise<Reply> {
    this.#worker ??= this.#start();
    this.#worker.postMessage(request);
    const reply = await new Promise<Reply>((resolve, reject) => this.#waiting.push({ resolve, reject }));
    if (reply.kind !== 'failed') return reply;
    throw reply.damaged ? new StoreDamagedError(reply.message) : new StoreUnavailableError(reply.message);
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
        const error = new StoreUnavailableError(`Cannot write to ${this.name}: its thread ended`, { cause });
        for (const { reject } of this.#waiting.splice(0)) reject(error);
        resolve();
      });
    });
    return worker;
  }
}

/** Returns how many bytes it took. */
function packBatch(target: Buffer, batch: readonly LogRecord[]): number {
  let length = 0;
  for (const { type, entry } of batch) {
    const { collection, id, revision, bytes } = entry;
    length = pack(target, length, { revision, collection, id, type: typeNumber(type), value: bytes });
  }
  return length;
}
