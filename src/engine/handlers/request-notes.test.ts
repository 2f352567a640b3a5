import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RequestNotes } from '#engine/handlers/request-notes.ts';

test('empty notes allocate nothing', () => {
  const notes = new RequestNotes();
  assert.equal(notes.warnings, undefined);
  assert.equal(notes.annotations, undefined);
});

test('warnings are deduplicated, truncated and limited in total', () => {
  const notes = new RequestNotes();
  notes.warn('look out');
  notes.warn('look out');
  notes.warn('x'.repeat(5000));
  assert.deepEqual(
    notes.warnings?.map((text) => text.length),
    ['look out'.length, 1024],
  );
  for (let i = 0; i < 100; i++) notes.warn(`${i}`.padEnd(1000, '.'));
  assert.ok((notes.warnings ?? []).join('').length <= 4096);
});

test('the first value of an annotation wins, and there are at most a hundred', () => {
  const notes = new RequestNotes();
  notes.annotate('policy/reason', 'first');
  notes.annotate('policy/reason', 'second');
  assert.equal(notes.annotations?.get('policy/reason'), 'first');
  for (let i = 0; i < 200; i++) notes.annotate(`policy/${i}`, 'x'.repeat(20_000));
  assert.equal(notes.annotations?.size, 100);
  assert.equal(notes.annotations?.get('policy/0')?.length, 10 * 1024);
});
