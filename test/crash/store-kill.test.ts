/** kill -9 of the store at many times: acknowledged writes are there, and a watch can resume from any kept revision. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openSqliteStore } from '#engine/store/open-store.ts';
import type { Store } from '#engine/store/store.ts';
import { KILL_OPTIONS } from '#engine/store/testing/kill-options.ts';
import { replay, temporaryDirectory } from '#engine/store/testing/test-bed.ts';

interface Acknowledged {
  readonly type: string;
  readonly id: string;
  readonly revision: number;
}

/** The number of acknowledgements before each kill: from the first one to well after a compaction. */
const KILL_COUNTS = [1, 2, 40, 130, 333, 700, 901, 1500, 2222, 3000];

/** Kills the writer after this number of acknowledgements; later ones that it still printed count too. */
async function writeUntilKilled(directory: string, acknowledgements: number): Promise<Acknowledged[]> {
  const script = fileURLToPath(new URL('../../src/engine/store/testing/kill-writer.ts', import.meta.url));
  const child = spawn(process.execPath, [script], { cwd: directory, stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    if (lines.length === acknowledgements) child.kill('SIGKILL');
  }
  await exited;
  assert.equal(child.signalCode, 'SIGKILL');
  return lines.map((line) => {
    const [type, id, revision] = line.split(' ');
    return { type: type!, id: id!, revision: Number(revision) };
  });
}

/** Checks the objects; `acknowledged` has all writes of all lives of the file, in the order of their acknowledgement. */
function checkState(store: Store, acknowledged: readonly Acknowledged[]): void {
  const last = new Map(acknowledged.map((one) => [one.id, one]));
  const deletes = replay(store, store.compactedRevision).filter(({ type }) => type === 'delete');
  for (const { type, id, revision } of last.values()) {
    const found = store.get('pods', id);
    if (type === 'delete') {
      assert.ok(!found || found.revision > revision, `${id} was deleted at ${revision} and came back`);
    } else if (found) {
      assert.ok(found.revision >= revision, `${id} was written at ${revision} and fell back to ${found.revision}`);
    } else {
      // Only a delete that was on disk but not acknowledged explains this; it is too new to be compacted.
      const later = deletes.some(({ entry }) => entry.id === id && entry.revision > revision);
      assert.ok(later, `${id} was written at ${revision} and is lost`);
    }
  }
  for (const { id, revision, bytes } of store.list('pods').entries) {
    const object = JSON.parse(bytes.toString());
    assert.deepEqual([object.type, object.id, object.revision], ['put', id, revision]);
  }
}

function checkWatches(store: Store, acknowledged: readonly Acknowledged[]): void {
  const { compactedRevision } = store;
  const events = replay(store, compactedRevision);
  const byRevision = new Map(events.map((event) => [event.entry.revision, event]));
  assert.equal(byRevision.size, events.length);
  for (const { type, id, revision } of acknowledged) {
    if (revision <= compactedRevision) continue;
    const event = byRevision.get(revision);
    assert.deepEqual([event?.type, event?.entry.id], [type, id], `event of revision ${revision}`);
  }
  const latest = new Map(
    store.list('pods', { atRevision: compactedRevision }).entries.map((entry) => [entry.id, entry]),
  );
  for (const [index, { type, entry, previous }] of events.entries()) {
    assert.equal(latest.get(entry.id), previous, `the previous state of revision ${entry.revision}`);
    if (type === 'put') latest.set(entry.id, entry);
    else latest.delete(entry.id);
    if (index % 50 === 0) assert.deepEqual(replay(store, entry.revision), events.slice(index + 1));
  }
  assert.deepEqual([...latest.values()].length, store.count('pods'));
}

test('after kills no acknowledged write is lost, no deleted object returns, and no revision is reused', async () => {
  const directory = temporaryDirectory();
  const acknowledged: Acknowledged[] = [];
  let newest = 0;
  try {
    for (const count of KILL_COUNTS) {
      const round = await writeUntilKilled(directory, count);
      assert.ok(round.length >= count);
      for (const { revision } of round) assert.ok(revision > newest, `revision ${revision} was given before`);
      acknowledged.push(...round);
      const store = await openSqliteStore(join(directory, 'kill.db'), KILL_OPTIONS);
      try {
        checkState(store, acknowledged);
        checkWatches(store, acknowledged);
        newest = store.revision;
      } finally {
        await store.close();
      }
    }
    assert.equal(new Set(acknowledged.map(({ revision }) => revision)).size, acknowledged.length);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
