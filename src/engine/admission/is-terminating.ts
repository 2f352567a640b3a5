/** Reports whether a stored object is under deletion, computed once per version. */
import { decodeStored } from '#engine/encoding/stored-object.ts';
import type { Entry } from '#engine/store/store.ts';

const known = new WeakMap<Entry, boolean>();

export function isTerminating(entry: Entry): boolean {
  let terminating = known.get(entry);
  if (terminating === undefined) {
    terminating = decodeStored(entry.bytes).metadata.deletionTimestamp !== undefined;
    known.set(entry, terminating);
  }
  return terminating;
}
