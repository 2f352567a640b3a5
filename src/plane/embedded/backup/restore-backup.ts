/**
 * `selfsame restore-backup`: puts the store and the keys of a backup into a data directory that no server uses.
 * Existing files are moved to `replaced-<time>`; nothing is deleted.
 */
import { mkdir, mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { STORE_FILE } from '#engine/engine.ts';
import { openSqliteStore } from '#engine/store/open-store.ts';
import { acquireDataDir } from '#lib/files/data-dir-lock.ts';
import { unpackBackup } from '#plane/embedded/backup/backup-archive.ts';
import { BackupError } from '#plane/embedded/backup/backup-error.ts';

const [PRIVATE_DIR, PRIVATE_FILE] = [0o700, 0o600];
const RESTORED_PATHS = [STORE_FILE, `${STORE_FILE}-wal`, 'pki'];

export interface RestoreOptions {
  readonly from: string;
  readonly dataDir: string;
  readonly now: Date;
}

export interface RestoredBackup {
  readonly createdAt: string;
  readonly revision: number;
  /** Directory with the previous files; undefined if there were none. */
  readonly movedTo: string | undefined;
}

/** Throws BackupError, StoreDamagedError or DataDirError before it changes the directory. */
export async function restoreBackupArchive({ from, dataDir, now }: RestoreOptions): Promise<RestoredBackup> {
  const files = await unpackBackup(await readFile(from));
  const createdAt = parseCreationTime(files.get('backup.json')!);
  const lock = acquireDataDir(dataDir);
  try {
    const draft = await mkdtemp(join(dataDir, 'restore-'));
    try {
      for (const [name, content] of files) await writeDraft(join(draft, name), content);
      const revision = await readRevision(join(draft, STORE_FILE));
      const movedTo = await moveExisting(dataDir, now);
      for (const name of RESTORED_PATHS)
        if (await exists(join(draft, name))) await rename(join(draft, name), join(dataDir, name));
      return { createdAt, revision, movedTo };
    } finally {
      await rm(draft, { recursive: true, force: true });
    }
  } finally {
    lock.release();
  }
}

function parseCreationTime(manifest: Buffer): string {
  const { kind, format, createdAt } = parseManifest(manifest);
  if (kind !== 'selfsame-backup' || typeof createdAt !== 'string')
    throw new BackupError('its backup.json was not created by selfsame backup');
  if (format !== 1)
    throw new BackupError(`it has format ${String(format)}; expected 1: use the version that created it`);
  return createdAt;
}

function parseManifest(manifest: Buffer): Record<string, unknown> {
  try {
    return { ...(JSON.parse(manifest.toString('utf8')) as object) };
  } catch (cause) {
    throw new BackupError('its backup.json is damaged', { cause });
  }
}

async function writeDraft(path: string, content: Buffer): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: PRIVATE_DIR });
  await writeFile(path, content, { mode: PRIVATE_FILE, flush: true });
}

/** Opens the store, which checks all of it as at a start, and returns its revision. Throws if it is damaged. */
async function readRevision(file: string): Promise<number> {
  const store = await openSqliteStore(file);
  const { revision } = store;
  await store.close();
  return revision;
}

async function moveExisting(dataDir: string, now: Date): Promise<string | undefined> {
  const existing: string[] = [];
  for (const name of RESTORED_PATHS) if (await exists(join(dataDir, name))) existing.push(name);
  if (existing.length === 0) return undefined;
  const target = join(dataDir, `replaced-${now.toISOString().replaceAll(/[:.]/g, '-')}`);
  await mkdir(target, { mode: PRIVATE_DIR });
  for (const name of existing) await rename(join(dataDir, name), join(target, name));
  return target;
}

const exists = async (path: string) => (await stat(path).catch(() => undefined)) !== undefined;
