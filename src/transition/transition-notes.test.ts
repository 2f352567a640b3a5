import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConfigMap } from '#kube/core-kinds.ts';
import { ENTRIES_PER_CHUNK, readProgress, type EntryNote } from '#api/machine-types/plan.ts';
import { FakeClock, settle } from '#lib/testing/fake-clock.ts';
import { alreadyExists, internalError, notFound } from '#kube/api-error.ts';
import { silentLog } from '#lib/log.ts';
import { TransitionNotes, WRITE_INTERVAL_MS } from '#transition/transition-notes.ts';

const job = { namespace: 'sys', name: 'job', uid: 'job-uid' };
const RESOURCE = { group: '', plural: 'configmaps' };
const DONE: EntryNote = { state: 'done' };

/** Starts notes with a store of ConfigMaps that counts writes. */
function startNotes(
  t: { after(fn: () => void): void },
  { names = [] as string[], notes = new Map<number, EntryNote>() } = {},
) {
  const clock = new FakeClock();
  const stored = new Map<string, ConfigMap>();
  const state = { writes: 0, broken: false };
  const written: number[][] = [];
  const write = (name: string, object: ConfigMap): Promise<never> => {
    if (state.broken) throw internalError('the disk is full');
    state.writes++;
    stored.set(name, object);
    return Promise.resolve(object as never);
  };
  const client = {
    async create(_type: unknown, object: unknown) {
      const part = object as ConfigMap;
      const name = part.metadata.name ?? '';
      if (stored.has(name)) throw alreadyExists(RESOURCE, name);
      return await write(name, part);
    },
    async patch(_type: unknown, { name }: { name: string }, patch: { body: unknown }) {
      const there = stored.get(name);
      if (there === undefined) throw notFound(RESOURCE, name);
      const { metadata, data } = patch.body as ConfigMap;
      return await write(name, {
        ...there,
        metadata: { ...there.metadata, ...metadata },
        data: { ...there.data, ...data },
      });
    },
  };
  const onWritten = (indexes: ReadonlySet<number>) => void written.push([...indexes]);
  const progress = new TransitionNotes({ client, job, clock, log: silentLog, notes, names: new Set(names), onWritten });
  const stopping = new AbortController();
  t.after(() => stopping.abort());
  void progress.run({ signal: stopping.signal });
  const read = () => Object.fromEntries(readProgress(job, [...stored.values()]));
  return { clock, stored, state, written, progress, read };
}

test('the first note is written at once, later ones together after a second', async (t) => {
  const { clock, state, written, progress, read } = startNotes(t);
  progress.set(0, { state: 'updated' });
  assert.equal(progress.isWritten(0), false);
  await settle();
  assert.deepEqual([state.writes, progress.isWritten(0)], [1, true]);
  for (const index of [0, 1, 2]) progress.set(index, DONE);
  await clock.advance(WRITE_INTERVAL_MS - 1);
  assert.deepEqual([state.writes, progress.isWritten(2)], [1, false]);
  await clock.advance(1);
  assert.equal(state.writes, 2);
  assert.deepEqual(read(), { 0: DONE, 1: DONE, 2: DONE });
  assert.deepEqual(written, [[0], [0, 1, 2]]);
});

test('allWritten does not wait for the next second', async (t) => {
  const { state, progress, read } = startNotes(t);
  progress.set(0, { state: 'updated' });
  await settle();
  progress.set(0, DONE);
  await settle();
  assert.equal(state.writes, 1);
  await progress.allWritten();
  assert.deepEqual([state.writes, read()], [2, { 0: DONE }]);
});

test('only changed ConfigMaps are written', async (t) => {
  const { stored, progress } = startNotes(t);
  progress.set(ENTRIES_PER_CHUNK, DONE);
  await settle();
  assert.deepEqual([...stored.keys()], ['job-progress-1']);
});

test('earlier notes are kept, and entries without a note are pending', async (t) => {
  const { progress, read } = startNotes(t, { notes: new Map([[3, DONE]]) });
  assert.deepEqual([progress.get(3), progress.get(4), progress.isWritten(3)], [DONE, { state: 'pending' }, true]);
  progress.set(4, DONE);
  await settle();
  assert.deepEqual(read(), { 3: DONE, 4: DONE });
});

test('a failed write is repeated, and the note counts as written only then', async (t) => {
  const { clock, state, progress, read } = startNotes(t);
  state.broken = true;
  progress.set(0, DONE);
  let written = false;
  void progress.allWritten().then(() => (written = true));
  await clock.advance(10_000);
  assert.deepEqual([progress.isWritten(0), written], [false, false]);
  state.broken = false;
  await clock.advance(30_000);
  assert.deepEqual([progress.isWritten(0), written, read()], [true, true, { 0: DONE }]);
});

test('a deleted ConfigMap is created again', async (t) => {
  const { clock, stored, progress, read } = startNotes(t);
  progress.set(0, DONE);
  await settle();
  stored.clear();
  progress.set(1, DONE);
  await clock.advance(5000);
  assert.deepEqual(read(), { 0: DONE, 1: DONE });
});

test('an unknown ConfigMap of the same name is overwritten', async (t) => {
  const { clock, stored, progress, read } = startNotes(t);
  stored.set('job-progress-0', {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'job-progress-0', labels: {} },
    data: { notes: '{"9":{"state":"done"}}' },
  });
  progress.set(0, DONE);
  await clock.advance(1000);
  assert.deepEqual(read(), { 0: DONE });
});
