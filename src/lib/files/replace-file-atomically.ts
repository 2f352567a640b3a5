/** Replaces files atomically, without waiting for the disk. */
import { rename, writeFile } from 'node:fs/promises';

const PRIVATE_FILE = 0o600;

/**
 * Replaces a file: readers, also after a kill -9, find either the old content or the new content. After a power failure
 * the content may be lost. Two writers of one file must take turns.
 */
export async function replaceFileAtomically(path: string, content: string): Promise<void> {
  const temporary = `${path}.tmp`;
  await writeFile(temporary, content, { mode: PRIVATE_FILE });
  await rename(temporary, path);
}
