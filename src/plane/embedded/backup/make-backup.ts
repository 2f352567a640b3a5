/**
 * `selfsame backup`: writes an archive of the store at one point in time, and of the keys. A running server provides a
 * copy without interruption; otherwise the files are copied under the lock of the data directory.
 */
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { request } from 'node:https';
import { isIP } from 'node:net';
import { dirname, join } from 'node:path';
import { loadKubeconfig, type ClusterAccess } from '#client/kubeconfig.ts';
import { STORE_FILE } from '#engine/engine.ts';
import { LogStore } from '#engine/store/log-store.ts';
import { SqliteJournal } from '#engine/store/sqlite/sqlite-journal.ts';
import { acquireDataDir, DataDirBusyError } from '#lib/data-dir-lock.ts';
import { writePrivateFile } from '#lib/private-file.ts';
import { VERSION } from '#lib/version.ts';
import { packBackup, type BackupFile } from '#plane/embedded/backup/backup-archive.ts';
import { BackupError } from '#plane/embedded/backup/backup-error.ts';

const REQUEST_TIMEOUT_MS = 120_000;

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

function requestCopy(access: ClusterAccess): Promise<Buffer> {
  const url = new URL('/backup', access.server);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const { certificateAuthority: ca, clientCertificate: cert, clientKey: key } = access;
  const servername = isIP(host) === 0 ? host : '';
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      method: 'POST',
      ca,
      cert,
      key,
      servername,
      agent: false,
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    });
    sent.on('error', (cause) => reject(new BackupError(`the server does not respond: ${cause.message}`, { cause })));
    sent.on('response', (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('error', reject);
      response.on('end', () => {
        const body = Buffer.concat(parts);
        if (response.statusCode === 200) resolve(body);
        else
          reject(
            new BackupError(`the server responded with ${response.statusCode}: ${body.toString('utf8').slice(0, 300)}`),
          );
      });
    });
    sent.end();
  });
}
