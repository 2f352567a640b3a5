/**
 * The archive of a backup: the files from which a data directory becomes the same plane again, without disks and state
 * of guests.
 *
 *   backup.json   version and time of the backup
 *   store.db      all objects
 *   pki/          the CA, so that issued certificates stay valid, and the key that signs tokens
 */
import { gunzipSync, gzipSync } from 'node:zlib';
import { readTar, readWhole } from '#lib/tar/read-tar.ts';
import { TarError } from '#lib/tar/tar-header.ts';
import { tarFile, writeTar } from '#lib/tar/write-tar.ts';
import { BackupError } from '#plane/embedded/backup/backup-error.ts';

export interface BackupFile {
  readonly name: string;
  readonly content: Buffer;
}

/** Archives that claim to be larger are refused. */
const MAX_BYTES = 2 * 1024 ** 3;
const LIMITS = { entries: 100, fileBytes: MAX_BYTES, totalBytes: MAX_BYTES };
const NAMES = /^(?:backup\.json|store\.db|pki\/[a-z]+\.(?:key|crt))$/;

export async function packBackup(files: readonly BackupFile[], modifiedSeconds: number): Promise<Buffer> {
  const entries = files.map(({ name, content }) => tarFile(name, content));
  return gzipSync(Buffer.concat(await Array.fromAsync(writeTar(entries, { modifiedSeconds }))));
}

/** Throws BackupError if the archive is not a backup or has unexpected files. */
export async function unpackBackup(archive: Buffer): Promise<Map<string, Buffer>> {
  const files = new Map<string, Buffer>();
  try {
    for await (const file of readTar(unzip(archive), LIMITS)) {
      if (!NAMES.test(file.name)) throw new BackupError(`it has an unexpected file ${JSON.stringify(file.name)}`);
      files.set(file.name, await readWhole(file, MAX_BYTES));
    }
  } catch (error) {
    if (!(error instanceof TarError)) throw error;
    throw new BackupError(`it is damaged: ${error.message}`, { cause: error });
  }
  for (const needed of ['backup.json', 'store.db', 'pki/ca.crt', 'pki/ca.key']) {
    if (!files.has(needed)) throw new BackupError(`it has no ${needed}`);
  }
  return files;
}

async function* unzip(archive: Buffer): AsyncGenerator<Buffer> {
  try {
    yield gunzipSync(archive, { maxOutputLength: MAX_BYTES });
  } catch (cause) {
    throw new BackupError('it was not created by selfsame backup, or it is damaged', { cause });
  }
}
