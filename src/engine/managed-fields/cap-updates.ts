/** Limits the number of update entries: beyond ten, the oldest of each version are merged into one. */
import { union, type FieldSet } from '#kube/field-sets/field-set.ts';
import { parseFieldsV1 } from '#kube/field-sets/fields-v1.ts';
import { compareTimes, headOf, managerIdentity, makeEntry, type ManagedEntry } from '#engine/managed-fields/entries.ts';

export const MAX_UPDATE_ENTRIES = 10;
const ANCIENT = 'ancient-changes';

export function capUpdates(entries: ManagedEntry[]): ManagedEntry[] {
  if (entries.length <= MAX_UPDATE_ENTRIES) return entries;
  const updates = entries.filter(({ operation }) => operation === 'Update');
  let excess = updates.length - MAX_UPDATE_ENTRIES;
  if (excess <= 0) return entries;
  const kept = new Set(entries);
  const buckets = new Map<string, ManagedEntry>();
  for (const entry of updates) if (isBucket(entry)) buckets.set(entry.apiVersion, entry);
  const firsts = new Map<string, ManagedEntry>();
  /** The entries to merge, by version. */
  const merged = new Map<string, ManagedEntry[]>();
  for (const entry of updates.toSorted(oldestFirst)) {
    if (excess <= 0) break;
    const { apiVersion } = entry;
    // A bucket that other entries were already merged into.
    if (merged.get(apiVersion)?.[0] === entry) continue;
    const first = firsts.get(apiVersion);
    if (first === undefined) {
      firsts.set(apiVersion, entry);
      continue;
    }
    let gathered = merged.get(apiVersion);
    if (gathered === undefined) {
      // Without a bucket, or if the bucket is this entry, the first entry of the version becomes the bucket.
      const known = buckets.get(apiVersion);
      merged.set(apiVersion, (gathered = [known === undefined || known === entry ? first : known]));
    }
    gathered.push(entry);
    excess--;
  }
  for (const [apiVersion, gathered] of merged) {
    for (const entry of gathered) kept.delete(entry);
    const { time } = gathered.at(-1)!;
    const head = { manager: ANCIENT, operation: 'Update', apiVersion, subresource: '', time } as const;
    kept.add(makeEntry(head, unionOf(gathered.map(({ fieldsV1 }) => parseFieldsV1(fieldsV1)))));
  }
  return [...kept];
}

/** Merges by halves: merging one after the other would copy all previous ones each time. */
function unionOf(sets: readonly FieldSet[]): FieldSet {
  if (sets.length <= 2) return sets.reduce(union);
  const half = sets.length >> 1;
  return union(unionOf(sets.slice(0, half)), unionOf(sets.slice(half)));
}

function isBucket({ manager, subresource = '' }: ManagedEntry): boolean {
  return manager === ANCIENT && subresource === '';
}

function oldestFirst(a: ManagedEntry, b: ManagedEntry): number {
  const [left, right] = [managerIdentity(headOf(a)), managerIdentity(headOf(b))];
  return compareTimes(a.time, b.time) || (left < right ? -1 : left > right ? 1 : 0);
}
