/**
 * `selfsame restore-backup`: puts the store and the keys of a backup into a data directory that no server uses. What is
 * there moves aside, into `replaced-<time>`; nothing is deleted.
 */
import { mkdir, mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { STORE_FILE } from '#engine/engine.ts';
import { openSqliteStore } from '#engine/store/open-store.ts';
import { acquireDataDir } from '#lib/data-dir-lock.ts';
import { unpackBackup } from '#plane/embedded/backup/backup-archive.ts';
import { BackupError } from '#plane/embedded/backup/backup-error.ts';

const [PRIVATE_DIR, PRIVATE_FILE] = [0o700, 0o600];
const PLACES = [STORE_FILE, `${STORE_FILE}-wal`, 'pki'];

export interface RestoreOptions {
  readonly from: string;
  readonly dataDir: string;
  readonly now: Date;
}

export interface Restored {
  readonly createdAt: string;
  readonly revision: number;
  /** Where what was there before is now; undefined where there was nothing. */
  readonly movedTo: string | undefined;
}

/** Throws BackupError, StoreDamagedError or DataDirError before anything of the directory is touched. */
export async function restoreBackup({ from, dataDir, now }: RestoreOptions): Promise<Restored> {
  const files = unpackBackup(await readFile(from));
  const createdAt = madeAt(files.get('backup.json')!);
  const lock = acquireDataDir(dataDir);
  try {
    const draft = await mkdtemp(join(dataDir, 'restore-'));
    try {
      for (const [name, content] of files) await place(join(draft, name), content);
      const revision = await checkedRevision(join(draft, STORE_FILE));
      const movedTo = await moveAside(dataDir, now);
      for (const name of PLACES)
        if (await exists(join(draft, name))) await rename(join(draft, name), join(dataDir, name));
      return { createdAt, revision, movedTo };
    } finally {
      await rm(draft, { recursive: true, force: true });
    }
  } finally {
    lock.release();
  }
}

function madeAt(about: Buffer): string {
  const { kind, format, createdAt } = parsed(about);
  if (kind !== 'selfsame-backup' || typeof createdAt !== 'string')
    throw new BackupError('its backup.json is none of ours');
  if (format !== 1) throw new BackupError(`it has format ${String(format)}; expected 1: use the version that made it`);
  return createdAt;
}

function parsed(about: Buffer): Record<string, unknown> {
  try {
    return { ...(JSON.parse(about.toString('utf8')) as object) };
  } catch (cause) {
    throw new BackupError('its backup.json is damaged', { cause });
  }
}

async function place(path: string, content: Buffer): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: PRIVATE_DIR });
  await writeFile(path, content, { mode: PRIVATE_FILE, flush: true });
}

/** Reads all of it through, as a start does; a damaged one is refused here. */
async function checkedRevision(file: string): Promise<number> {
  const store = await openSqliteStore(file);
  const { revision } = store;
  await store.close();
  return revision;
}

async function moveAside(dataDir: string, now: Date): Promise<string | undefined> {
  const there: string[] = [];
  for (const name of PLACES) if (await exists(join(dataDir, name))) there.push(name);
  if (there.length === 0) return undefined;
  const aside = join(dataDir, `replaced-${now.toISOString().replaceAll(/[:.]/g, '-')}`);
  await mkdir(aside, { mode: PRIVATE_DIR });
  for (const name of there) await rename(join(dataDir, name), join(aside, name));
  return aside;
}

const exists = async (path: string) => (await stat(path).catch(() => undefined)) !== undefined;
