/** Bounds the entries that updates leave behind: beyond ten, the oldest of each version are joined to one. */
import { union } from '#kube/field-sets/field-set.ts';
import { parseFieldsV1 } from '#kube/field-sets/fields-v1.ts';
import { compareTimes, headOf, identityOf, makeEntry, type Entry } from '#engine/managed-fields/entries.ts';

export const MAX_UPDATE_ENTRIES = 10;
const ANCIENT = 'ancient-changes';

export function capUpdates(entries: Entry[]): Entry[] {
  if (entries.length <= MAX_UPDATE_ENTRIES) return entries;
  const updates = entries.filter(({ operation }) => operation === 'Update');
  let excess = updates.length - MAX_UPDATE_ENTRIES;
  if (excess <= 0) return entries;
  const kept = new Set(entries);
  const buckets = new Map<string, Entry>();
  for (const entry of updates) if (isBucket(entry)) buckets.set(entry.apiVersion, entry);
  const firsts = new Map<string, Entry>();
  for (const entry of updates.toSorted(oldestFirst)) {
    if (excess <= 0) break;
    const { apiVersion } = entry;
    const first = firsts.get(apiVersion);
    if (first === undefined) {
      firsts.set(apiVersion, entry);
      continue;
    }
    // There is no bucket yet, or it is the very entry that comes now: then the first of its version becomes it.
    const known = buckets.get(apiVersion);
    const into = known === undefined || known === entry ? first : known;
    const fields = union(parseFieldsV1(into.fieldsV1), parseFieldsV1(entry.fieldsV1));
    const head = { manager: ANCIENT, operation: 'Update', apiVersion, subresource: '', time: entry.time } as const;
    const bucket = makeEntry(head, fields);
    kept.delete(into);
    kept.delete(entry);
    kept.add(bucket);
    buckets.set(apiVersion, bucket);
    excess--;
  }
  return [...kept];
}

function isBucket({ manager, subresource = '' }: Entry): boolean {
  return manager === ANCIENT && subresource === '';
}

function oldestFirst(a: Entry, b: Entry): number {
  const [left, right] = [identityOf(headOf(a)), identityOf(headOf(b))];
  return compareTimes(a.time, b.time) || (left < right ? -1 : left > right ? 1 : 0);
}
