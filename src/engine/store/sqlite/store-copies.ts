/** Whole copies of the store as bytes, for backups: one at a time, made beside it and removed again. */
import { readFile, rm, stat } from 'node:fs/promises';
import { StoreUnavailableError } from '../store.ts';
import type { SqliteJournal } from './sqlite-journal.ts';

/** More would not fit into one answer, nor into our memory. */
const MAX_COPY_BYTES = 1024 ** 3;

/** Who asks while one is being made waits for the next one: what they wrote before is in theirs. */
export function storeCopies(journal: Pick<SqliteJournal, 'copyTo'>, draft: string): () => Promise<Buffer> {
  let last: Promise<unknown> = Promise.resolve();
  return () => {
    const copy = last.then(() => copyOf(journal, draft));
    last = copy.catch(() => {});
    return copy;
  };
}

async function copyOf(journal: Pick<SqliteJournal, 'copyTo'>, draft: string): Promise<Buffer> {
  await rm(draft, { force: true });
  try {
    await journal.copyTo(draft);
    const { size } = await stat(draft);
    if (size > MAX_COPY_BYTES) {
      throw new StoreUnavailableError(
        `Cannot copy the store: it has ${size} bytes; expected at most ${MAX_COPY_BYTES}`,
      );
    }
    return await readFile(draft);
  } finally {
    await rm(draft, { force: true });
  }
}
