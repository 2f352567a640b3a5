/** Creates an empty store file atomically, so that a crash never leaves an incomplete file under its name. */
import { closeSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import {
  APPLICATION_ID,
  COMPACTED_REVISION,
  CREATE_TABLES,
  FORMAT,
  metaCrc,
  PAGE_BYTES,
  SET_META,
} from '#engine/store/sqlite/format.ts';

export function createFile(file: string): void {
  const draft = `${file}.new`;
  for (const leftover of [draft, `${draft}-journal`, `${draft}-wal`, `${draft}-shm`]) rmSync(leftover, { force: true });
  closeSync(openSync(draft, 'wx', 0o600));
  const db = new DatabaseSync(draft);
  try {
    db.exec(`
      PRAGMA page_size = ${PAGE_BYTES};
      PRAGMA application_id = ${APPLICATION_ID};
      PRAGMA user_version = ${FORMAT};
      ${CREATE_TABLES}
    `);
    db.prepare(SET_META).run(COMPACTED_REVISION, 0, metaCrc(COMPACTED_REVISION, 0));
    db.exec('PRAGMA journal_mode = WAL');
  } finally {
    db.close();
  }
  syncPath(draft);
  renameSync(draft, file);
  syncPath(dirname(file));
}

function syncPath(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
