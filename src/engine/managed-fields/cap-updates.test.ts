import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldSetOf } from '#kube/field-sets/field-set.ts';
import { capUpdates, MAX_UPDATE_ENTRIES } from '#engine/managed-fields/cap-updates.ts';
import { makeEntry, type ManagedEntry } from '#engine/managed-fields/entries.ts';

function anEntry(manager: string, minute: number): ManagedEntry {
  const time = `2026-11-16T10:${String(minute).padStart(2, '0')}:00Z`;
  return makeEntry(
    { manager, operation: 'Update', apiVersion: 'v1', subresource: '', time },
    fieldSetOf([`f:${manager}`]),
  );
}

const others = (count: number) => Array.from({ length: count }, (_, i) => anEntry(`m${i}`, i + 20));

const cases: Record<string, { entries: ManagedEntry[]; bucket: string[] }> = {
  'the two oldest entries are merged': { entries: others(11), bucket: ['f:m0', 'f:m1'] },
  'a bucket takes the next entry': {
    entries: [anEntry('ancient-changes', 1), ...others(10)],
    bucket: ['f:ancient-changes', 'f:m0'],
  },
  'a bucket that is not the oldest is counted once': {
    entries: [anEntry('ancient-changes', 22), ...others(13)],
    bucket: ['f:ancient-changes', 'f:m1', 'f:m2', 'f:m3', 'f:m4'],
  },
};

for (const [what, { entries, bucket }] of Object.entries(cases)) {
  test(what, () => {
    const capped = capUpdates(entries);
    assert.equal(capped.length, MAX_UPDATE_ENTRIES);
    const ancient = capped.filter(({ manager }) => manager === 'ancient-changes');
    assert.deepEqual(
      ancient.map(({ fieldsV1 }) => Object.keys(fieldsV1)),
      [bucket],
    );
  });
}
