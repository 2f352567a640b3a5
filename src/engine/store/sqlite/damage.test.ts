/** Damaged files are rejected by name and not modified. A write-ahead log that ends early is not damage. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { copyFileSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, it } from 'node:test';
import { openSqliteStore } from '#engine/store/open-store.ts';
import { StoreDamagedError } from '#engine/store/store.ts';
import { put, replay, temporaryDirectory } from '#engine/store/testing/test-bed.ts';
import { PAGE_BYTES } from '#engine/store/sqlite/format.ts';

const WRITES = 60;
const TEXT = 'recognisable '.repeat(100);
const WAL_HEADER_BYTES = 32;
const FRAME_BYTES = 24 + PAGE_BYTES;

let images: string;
let work: string;
let count = 0;

/** Creates `closed.db`, as a clean stop leaves it, and `killed.db` with its -wal file, as kill -9 leaves it. */
before(async () => {
  images = temporaryDirectory();
  work = temporaryDirectory();
  const file = join(images, 'closed.db');
  const store = await openSqliteStore(file);
  for (let i = 0; i < WRITES; i++) await put(store, `id-${i % 20}`, TEXT);
  copyFileSync(file, join(images, 'killed.db'));
  copyFileSync(`${file}-wal`, join(images, 'killed.db-wal'));
  await store.close();
});

after(() => {
  rmSync(images, { recursive: true });
  rmSync(work, { recursive: true });
});

/** Copies an image, to be damaged by a test. */
function copyOf(image: 'closed' | 'killed'): string {
  const file = join(work, `${count++}.db`);
  copyFileSync(join(images, `${image}.db`), file);
  if (image === 'killed') copyFileSync(join(images, 'killed.db-wal'), `${file}-wal`);
  return file;
}

function flip(file: string, offset: number): void {
  const bytes = readFileSync(file);
  bytes[offset]! ^= 0x10;
  writeFileSync(file, bytes);
}

function change(file: string, sql: string): void {
  const db = new DatabaseSync(file);
  db.exec(sql);
  db.close();
}

/** Returns the hashes of all files of a store by name. */
function contents(file: string): Record<string, string> {
  const names = readdirSync(work).filter((name) => join(work, name).startsWith(file));
  return Object.fromEntries(names.map((name) => [name, hash('sha256', readFileSync(join(work, name)))]));
}

const cases: Record<string, { image?: 'closed' | 'killed'; damage: (file: string) => void; found: RegExp }> = {
  'a file that was cut': {
    damage: (file) => truncateSync(file, statSync(file).size / 2),
    found: /it is damaged \(.+\)/,
  },
  'a file that was cut within its first page': { damage: (file) => truncateSync(file, 5000), found: /it is damaged/ },
  'a file that was cut within its header': {
    damage: (file) => truncateSync(file, 50),
    found: /it ends after 50 bytes/,
  },
  'an empty file': { damage: (file) => truncateSync(file, 0), found: /it is empty/ },
  'a changed byte in a value': {
    damage: (file) => flip(file, readFileSync(file).lastIndexOf('recognisable')),
    found: /the row of revision \d+ does not match its checksum/,
  },
  'a changed id': {
    damage: (file) => change(file, "UPDATE log SET id = 'other' WHERE revision = 7"),
    found: /the row of revision 7 does not match its checksum/,
  },
  'a changed type': {
    damage: (file) => change(file, 'UPDATE log SET type = 1 WHERE revision = 7'),
    found: /the row of revision 7 does not match its checksum/,
  },
  'a changed compacted revision': {
    damage: (file) => change(file, 'UPDATE meta SET value = 5'),
    found: /its compacted revision does not match its checksum/,
  },
  'a changed byte in the header of a page': { damage: (file) => flip(file, PAGE_BYTES), found: /it is damaged/ },
  'a changed count of cells in a page': { damage: (file) => flip(file, 4 * PAGE_BYTES + 4), found: /it is damaged/ },
  'a missing table': { damage: (file) => change(file, 'DROP TABLE meta'), found: /no such table/ },
  'a text file': { damage: (file) => writeFileSync(file, 'apiVersion: v1\n'), found: /it is not a database/ },
  "another program's database": {
    damage: (file) => change(file, 'PRAGMA application_id = 1'),
    found: /it belongs to another program \(application id 0x1\)/,
  },
  'a file of a newer format': {
    damage: (file) => change(file, 'PRAGMA user_version = 99'),
    found: /it has format 99, newer than the supported 1; use the Selfsame version that wrote it/,
  },
  'a changed byte in the middle of the log': {
    image: 'killed',
    damage: (file) => flip(`${file}-wal`, WAL_HEADER_BYTES + 3 * FRAME_BYTES + 500),
    found: /-wal is damaged \(frame 4 of \d+ is bad, but commits follow it\)/,
  },
  'a changed byte in the header of the log': {
    image: 'killed',
    damage: (file) => flip(`${file}-wal`, 9),
    found: /-wal is damaged \(its header does not match its checksum\)/,
  },
  'a log without its file': {
    image: 'killed',
    damage: (file) => rmSync(file),
    found: /it is missing, but .+-wal exists/,
  },
};

describe('a damaged store is rejected and not modified', () => {
  for (const [what, { image = 'closed', damage, found }] of Object.entries(cases)) {
    it(what, async () => {
      const file = copyOf(image);
      damage(file);
      const before = contents(file);
      await assert.rejects(openSqliteStore(file), (error) => {
        assert(error instanceof StoreDamagedError, String(error));
        assert.ok(error.message.startsWith(`Cannot open ${file}: `), error.message);
        assert.match(error.message, found);
        assert.match(error.message, /Nothing was changed$/);
        return true;
      });
      assert.deepEqual(contents(file), before);
    });
  }
});

describe('a log that ends early is read up to its last complete commit', () => {
  const cuts: Record<string, (size: number) => number> = {
    'not cut': (size) => size,
    'cut within the last frame': (size) => size - 100,
    'cut between frames': () => WAL_HEADER_BYTES + 10 * FRAME_BYTES,
    'cut within the first frame': () => WAL_HEADER_BYTES + 100,
    'cut within its header': () => 10,
    'cut to nothing': () => 0,
  };
  for (const [what, cutAt] of Object.entries(cuts)) {
    it(what, async () => {
      const file = copyOf('killed');
      const { size } = statSync(`${file}-wal`);
      truncateSync(`${file}-wal`, cutAt(size));
      const store = await openSqliteStore(file);
      try {
        const revisions = replay(store, 0).map(({ entry }) => entry.revision);
        assert.deepEqual(
          revisions,
          Array.from({ length: store.revision }, (_, i) => i + 1),
        );
        assert.equal(store.revision === WRITES, cutAt(size) === size);
        assert.equal((await put(store, 'next')).revision, store.revision);
      } finally {
        await store.close();
      }
    });
  }

  it('torn within its last commit', async () => {
    const file = copyOf('killed');
    flip(`${file}-wal`, statSync(`${file}-wal`).size - 100);
    const store = await openSqliteStore(file);
    assert.equal(store.revision, WRITES - 1);
    await store.close();
  });
});
