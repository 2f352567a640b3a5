/**
 * `selfsame backup`: writes an archive of the store at one point in time, and of the keys. A running server provides a
 * copy without interruption; otherwise the files are copied under the lock of the data directory.
 */
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { apiServerOf, clientIdentityOf } from '#client/api-server.ts';
import { loadKubeconfig, type ClusterAccess } from '#client/kubeconfig.ts';
import { STORE_FILE } from '#engine/engine.ts';
import { LogStore } from '#engine/store/log-store.ts';
import { SqliteJournal } from '#engine/store/sqlite/sqlite-journal.ts';
import { systemClock } from '#lib/clock.ts';
import { acquireDataDir, DataDirBusyError } from '#lib/files/data-dir-lock.ts';
import { errorMessage } from '#lib/error-message.ts';
import { HttpsClient } from '#lib/https/https-client.ts';
import { readBody, readBodyStart } from '#lib/https/read-body.ts';
import { writePrivateFile } from '#lib/files/private-file.ts';
import { VERSION } from '#lib/version.ts';
import { packBackup, type BackupFile } from '#plane/embedded/backup/backup-archive.ts';
import { BackupError } from '#plane/embedded/backup/backup-error.ts';

const REQUEST_TIMEOUT_MS = 120_000;
const MAX_REFUSAL_BYTES = 300;

export interface MakeBackupOptions {
  readonly dataDir: string;
  readonly to: string;
  readonly now: Date;
}

export interface MadeBackup {
  readonly bytes: number;
  /** Source of the copy of the store. */
  readonly from: 'running server' | 'files';
}

/** Writes the archive atomically and readable by this user only, because it has keys and all Secrets. */
export async function makeBackup({ dataDir, to, now }: MakeBackupOptions): Promise<MadeBackup> {
  if ((await stat(to).catch(() => undefined)) !== undefined) throw new BackupError(`${to} already exists`);
  if ((await stat(join(dataDir, STORE_FILE)).catch(() => undefined)) === undefined) {
    throw new BackupError(`it has no ${STORE_FILE}; expected the data directory of a server`);
  }
  const { store, from } = await copyStore(dataDir);
  const manifest = { kind: 'selfsame-backup', format: 1, version: VERSION, createdAt: now.toISOString() };
  const pki = await readKeys(dataDir);
  const files = [
    { name: 'backup.json', content: Buffer.from(`${JSON.stringify(manifest)}\n`) },
    { name: STORE_FILE, content: store },
    ...pki,
  ];
  const archive = await packBackup(files, Math.floor(now.getTime() / 1000));
  await writePrivateFile(to, archive);
  return { bytes: archive.length, from };
}

async function readKeys(dataDir: string): Promise<BackupFile[]> {
  const dir = join(dataDir, 'pki');
  const names = (await readdir(dir)).filter((name) => /^[a-z]+\.(?:key|crt)$/.test(name)).toSorted();
  return await Promise.all(
    names.map(async (name) => ({ name: `pki/${name}`, content: await readFile(join(dir, name)) })),
  );
}

async function copyStore(dataDir: string): Promise<{ store: Buffer; from: MadeBackup['from'] }> {
  const lock = tryLock(dataDir);
  if (lock === undefined) return { store: await requestCopy(await readAdminAccess(dataDir)), from: 'running server' };
  try {
    return { store: await copyStoreFile(dataDir), from: 'files' };
  } finally {
    lock.release();
  }
}

/** Returns undefined if a server has locked the directory. */
function tryLock(dataDir: string): ReturnType<typeof acquireDataDir> | undefined {
  try {
    return acquireDataDir(dataDir);
  } catch (error) {
    if (error instanceof DataDirBusyError) return undefined;
    throw error;
  }
}

/** Copies the store of a stopped server. Opening it checks all of it, as at a start. */
async function copyStoreFile(dataDir: string): Promise<Buffer> {
  const journal = new SqliteJournal(join(dataDir, STORE_FILE));
  const store = await LogStore.open(journal);
  const dir = await mkdtemp(join(dirname(journal.name), 'backup-'));
  try {
    await journal.copyTo(join(dir, STORE_FILE));
    return await readFile(join(dir, STORE_FILE));
  } finally {
    await store.close();
    await rm(dir, { recursive: true, force: true });
  }
}

async function readAdminAccess(dataDir: string): Promise<ClusterAccess> {
  const text = await readFile(join(dataDir, 'kubeconfig'), 'utf8');
  const readNothing = () => {
    throw new BackupError('its kubeconfig refers to other files');
  };
  return loadKubeconfig(text, { readFile: readNothing });
}

async function requestCopy(access: ClusterAccess): Promise<Buffer> {
  const client = new HttpsClient({ maxSockets: 1, clock: systemClock });
  const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
  try {
    const request = { method: 'POST', path: '/backup', headers: { 'content-length': '0' }, signal };
    const { incoming } = await client.send(apiServerOf(access).server, clientIdentityOf(access), request);
    if (incoming.statusCode === 200) return await readBody(incoming, Number.POSITIVE_INFINITY);
    const why = await readBodyStart(incoming, {
      maxBytes: MAX_REFUSAL_BYTES,
      timeoutMs: REQUEST_TIMEOUT_MS,
      clock: systemClock,
    });
    throw new BackupError(`the server responded with ${incoming.statusCode}: ${why.slice(0, MAX_REFUSAL_BYTES)}`);
  } catch (cause) {
    if (cause instanceof BackupError) throw cause;
    throw new BackupError(`the server does not respond: ${errorMessage(cause)}`, { cause });
  } finally {
    client.close();
  }
}
