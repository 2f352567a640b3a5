import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';

/** Linux has the same value on all processors that Node.js supports; Node.js has no name for it. */
const O_PATH = 0o10000000;

/**
 * Opens a file of any type without reading or writing it, and without following a link. `/proc/self/fd/<fd>` names exactly
 * this file, whatever happens to its path meanwhile.
 */
export function openPath(path: string): Promise<FileHandle> {
  return open(path, O_PATH | constants.O_NOFOLLOW);
}
