/**
 * The archive of a backup: the files from which a data directory becomes the same plane again, without disks and state
 * of guests.
 *
 *   backup.json   version and time of the backup
 *   store.db      all objects
 *   pki/          the CA, so that issued certificates stay valid, and the key that signs tokens
 */
import { gunzipSync, gzipSync } from 'node:zlib';
import { BLOCK, padding, parseTarHeader, printTarHeader } from '#formats/ova/tar-header.ts';
import { BackupError } from '#plane/embedded/backup/backup-error.ts';

export interface BackupFile {
  readonly name: string;
  readonly content: Buffer;
}

/** Archives that claim to be larger are refused. */
const MAX_BYTES = 2 * 1024 ** 3;
const NAMES = /^(?:backup\.json|store\.db|pki\/[a-z]+\.(?:key|crt))$/;

export function packBackup(files: readonly BackupFile[], seconds: number): Buffer {
  const parts = files.flatMap(({ name, content }) => [
    printTarHeader(name, content.length, seconds),
    content,
    padding(content.length),
  ]);
  return gzipSync(Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)]));
}

/** Throws BackupError if the archive is not a backup or has unexpected files. */
export function unpackBackup(archive: Buffer): Map<string, Buffer> {
  const bytes = unzip(archive);
  const files = new Map<string, Buffer>();
  for (let at = 0; at + BLOCK <= bytes.length;) {
    const header = parseHeaderAt(bytes, at);
    if (header === undefined) break;
    if (!NAMES.test(header.name)) throw new BackupError(`it has an unexpected file ${JSON.stringify(header.name)}`);
    const content = bytes.subarray(at + BLOCK, at + BLOCK + header.size);
    if (content.length !== header.size) throw new BackupError('it is truncated');
    files.set(header.name, content);
    at += BLOCK + header.size + padding(header.size).length;
  }
  for (const needed of ['backup.json', 'store.db', 'pki/ca.crt', 'pki/ca.key']) {
    if (!files.has(needed)) throw new BackupError(`it has no ${needed}`);
  }
  return files;
}

function parseHeaderAt(bytes: Buffer, at: number): ReturnType<typeof parseTarHeader> {
  try {
    return parseTarHeader(bytes.subarray(at, at + BLOCK));
  } catch (cause) {
    throw new BackupError('it is damaged', { cause });
  }
}

function unzip(archive: Buffer): Buffer {
  try {
    return gunzipSync(archive, { maxOutputLength: MAX_BYTES });
  } catch (cause) {
    throw new BackupError('it was not created by selfsame backup, or it is damaged', { cause });
  }
}
