/** Complete copies of the store for backups, one at a time, made in a temporary file beside it. */
import { readFile, rm, stat } from 'node:fs/promises';
import { StoreUnavailableError } from '#engine/store/store.ts';
import type { SqliteJournal } from '#engine/store/sqlite/sqlite-journal.ts';

/** Larger copies would not fit into one response, nor into memory. */
const MAX_COPY_BYTES = 1024 ** 3;

/**
 * Returns a function that copies the store. A caller that arrives during a copy gets the next one, so that it contains
 * its previous writes.
 */
export function createStoreCopier(journal: Pick<SqliteJournal, 'copyTo'>, draft: string): () => Promise<Buffer> {
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
