/** After a commit reports an error, the writer reads the file to find out what was written. */
import assert from 'node:assert/strict';
import { renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, test } from 'node:test';
import { temporaryDirectory } from '#engine/store/testing/test-bed.ts';
import { createFile } from '#engine/store/sqlite/create-file.ts';
import { LogReader } from '#engine/store/sqlite/log-reader.ts';
import { LogWriter } from '#engine/store/sqlite/log-writer.ts';
import { pack, maxPackedBytes, unpackRecords } from '#engine/store/sqlite/record-codec.ts';

/** A writer whose commit can be replaced. */
class FaultyWriter extends LogWriter {
  fault: ((commit: () => void) => void) | undefined;
  protected override commit(db: DatabaseSync): void {
    const commit = (): void => super.commit(db);
    if (this.fault) this.fault(commit);
    else commit();
  }
}

let directory: string;
let file: string;
let writer: FaultyWriter;

beforeEach(() => {
  directory = temporaryDirectory();
  file = join(directory, 'store.db');
  createFile(file);
  writer = new FaultyWriter(file);
  writer.open(0);
});

afterEach(() => {
  writer.close();
  rmSync(directory, { recursive: true });
});

function append(after: number, ...revisions: number[]): void {
  const records = revisions.map((revision) => ({
    revision,
    collection: 'pods',
    id: `id-${revision}`,
    type: 0,
    value: Buffer.from(`value ${revision}`),
  }));
  const target = Buffer.alloc(records.reduce((room, record) => room + maxPackedBytes(record), 0));
  const length = records.reduce((offset, record) => pack(target, offset, record), 0);
  writer.append(target.subarray(0, length), { after, last: revisions.at(-1)! });
}

/** Closes the writer and reads the file as the next start would. */
function storedRevisions(): number[] {
  writer.close();
  const reader = new LogReader(file);
  const target = Buffer.alloc(100_000);
  const chunk = reader.readChunk(target);
  reader.close();
  return chunk ? unpackRecords(target.subarray(0, chunk.length)).map(({ entry }) => entry.revision) : [];
}

test('a commit that failed before anything was written is reported, and the next one succeeds', () => {
  append(0, 1);
  writer.fault = () => {
    throw new Error('disk I/O error');
  };
  assert.throws(() => append(1, 2, 3), /disk I\/O error/);
  writer.fault = undefined;
  append(1, 4, 5);
  assert.deepEqual(storedRevisions(), [1, 4, 5]);
});

test('a commit that is on disk despite an error succeeds', () => {
  append(0, 1);
  writer.fault = (commit) => {
    commit();
    throw new Error('disk I/O error');
  };
  append(1, 2, 3);
  writer.fault = undefined;
  append(3, 4);
  assert.deepEqual(storedRevisions(), [1, 2, 3, 4]);
});

test('a commit with an unknown outcome is reported as failed and removed once the file is back', () => {
  append(0, 1);
  writer.fault = (commit) => {
    commit();
    renameSync(file, `${file}.away`);
    throw new Error('disk I/O error');
  };
  assert.throws(() => append(1, 2, 3), /disk I\/O error/);
  writer.fault = undefined;
  assert.throws(() => append(1, 4), /unable to open database file/, 'a missing file must not be created again');
  assert.throws(() => writer.compact(1, new Float64Array()), /the last write failed/);
  renameSync(`${file}.away`, file);
  append(1, 5);
  assert.deepEqual(storedRevisions(), [1, 5]);
});

test('a file that was replaced by an older one is not written to', () => {
  append(0, 1);
  writer.close();
  assert.throws(() => append(7, 8), /revisions are missing after 1/);
  assert.deepEqual(storedRevisions(), [1]);
});

test('a file that another process wrote to between reading and writing is rejected', () => {
  append(0, 1);
  writer.close();
  assert.throws(() => writer.open(0), /its newest revision is 1; expected 0/);
});

test('compaction removes the named rows and keeps the newest revision', () => {
  append(0, 1, 2, 3);
  writer.compact(3, Float64Array.of(1, 2, 3));
  writer.close();
  writer.open(3);
  append(3, 4);
  assert.deepEqual(storedRevisions(), [4]);
});
