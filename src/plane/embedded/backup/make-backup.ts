/**
 * `selfsame backup`: the store as it is at one moment, and the keys. While the server runs it is asked for a copy and
 * goes on; else the files are copied under the lock of the data directory.
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

const ASK_MS = 120_000;

export interface BackupOptions {
  readonly dataDir: string;
  readonly to: string;
  readonly now: Date;
}

export interface MadeBackup {
  readonly bytes: number;
  /** How the store was copied. */
  readonly from: 'running server' | 'files';
}

/** The file is there whole or not at all, readable by this user alone: it holds keys and every Secret. */
export async function makeBackup({ dataDir, to, now }: BackupOptions): Promise<MadeBackup> {
  if ((await stat(to).catch(() => undefined)) !== undefined) throw new BackupError(`${to} exists already`);
  if ((await stat(join(dataDir, STORE_FILE)).catch(() => undefined)) === undefined) {
    throw new BackupError(`there is no ${STORE_FILE} in it; expected the data directory of a server`);
  }
  const { store, from } = await storeBytes(dataDir);
  const about = { kind: 'selfsame-backup', format: 1, version: VERSION, createdAt: now.toISOString() };
  const pki = await keysOf(dataDir);
  const files = [
    { name: 'backup.json', content: Buffer.from(`${JSON.stringify(about)}\n`) },
    { name: STORE_FILE, content: store },
    ...pki,
  ];
  const archive = packBackup(files, Math.floor(now.getTime() / 1000));
  await writePrivateFile(to, archive);
  return { bytes: archive.length, from };
}

async function keysOf(dataDir: string): Promise<BackupFile[]> {
  const dir = join(dataDir, 'pki');
  const names = (await readdir(dir)).filter((name) => /^[a-z]+\.(?:key|crt)$/.test(name)).toSorted();
  return await Promise.all(
    names.map(async (name) => ({ name: `pki/${name}`, content: await readFile(join(dir, name)) })),
  );
}

async function storeBytes(dataDir: string): Promise<{ store: Buffer; from: MadeBackup['from'] }> {
  const lock = lockOf(dataDir);
  if (lock === undefined) return { store: await askServer(await adminAccess(dataDir)), from: 'running server' };
  try {
    return { store: await copyOfFile(dataDir), from: 'files' };
  } finally {
    lock.release();
  }
}

/** Undefined while a server has it. */
function lockOf(dataDir: string): ReturnType<typeof acquireDataDir> | undefined {
  try {
    return acquireDataDir(dataDir);
  } catch (error) {
    if (error instanceof DataDirBusyError) return undefined;
    throw error;
  }
}

/** Read through and checked, as at a start. */
async function copyOfFile(dataDir: string): Promise<Buffer> {
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

async function adminAccess(dataDir: string): Promise<ClusterAccess> {
  const text = await readFile(join(dataDir, 'kubeconfig'), 'utf8');
  const readNothing = () => {
    throw new BackupError('its kubeconfig names other files');
  };
  return loadKubeconfig(text, { readFile: readNothing });
}

function askServer(access: ClusterAccess): Promise<Buffer> {
  const url = new URL('/backup', access.server);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const { certificateAuthority: ca, clientCertificate: cert, clientKey: key } = access;
  const servername = isIP(host) === 0 ? host : '';
  return new Promise((resolve, reject) => {
    const asked = request(url, {
      method: 'POST',
      ca,
      cert,
      key,
      servername,
      agent: false,
      signal: AbortSignal.timeout(ASK_MS),
    });
    asked.on('error', (cause) => reject(new BackupError(`the server does not answer: ${cause.message}`, { cause })));
    asked.on('response', (answer) => {
      const parts: Buffer[] = [];
      answer.on('data', (part: Buffer) => parts.push(part));
      answer.on('error', reject);
      answer.on('end', () => {
        const body = Buffer.concat(parts);
        if (answer.statusCode === 200) resolve(body);
        else reject(new BackupError(`the server said ${answer.statusCode}: ${body.toString('utf8').slice(0, 300)}`));
      });
    });
    asked.end();
  });
}
