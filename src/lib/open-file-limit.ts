/** The number of files and sockets that this process may have open. */
import { readFileSync } from 'node:fs';

/** The usual limit where the system does not say. */
const USUAL_LIMIT = 1024;

export function openFileLimit(): number {
  try {
    return parseOpenFileLimit(readFileSync('/proc/self/limits', 'utf8'));
  } catch {
    return USUAL_LIMIT;
  }
}

/** Parses the soft limit out of /proc/self/limits. */
export function parseOpenFileLimit(text: string): number {
  const found = /^Max open files\s+(\d+|unlimited)/m.exec(text)?.[1];
  if (found === 'unlimited') return Infinity;
  return found === undefined ? USUAL_LIMIT : Number(found);
}
