/**
 * The archive of a backup: what a data directory needs to be the same plane again. Not in it: disks and state of guests.
 *
 *   backup.json   which version made it, when, of which revision
 *   store.db      every object
 *   pki/          the CA, so that certificates that are out there go on, and the key that tokens are signed with
 */
import { gunzipSync, gzipSync } from 'node:zlib';
import { BLOCK, padding, parseTarHeader, printTarHeader } from '#formats/ova/tar-header.ts';
import { BackupError } from '#plane/embedded/backup/backup-error.ts';

export interface BackupFile {
  readonly name: string;
  readonly content: Buffer;
}

/** An archive that says it has more is none of ours. */
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

/** Throws BackupError for what is no backup, or has something in it that none of ours has. */
export function unpackBackup(archive: Buffer): Map<string, Buffer> {
  const bytes = unzipped(archive);
  const files = new Map<string, Buffer>();
  for (let at = 0; at + BLOCK <= bytes.length;) {
    const header = headerAt(bytes, at);
    if (header === undefined) break;
    if (!NAMES.test(header.name)) throw new BackupError(`it holds ${JSON.stringify(header.name)}, which no backup has`);
    const content = bytes.subarray(at + BLOCK, at + BLOCK + header.size);
    if (content.length !== header.size) throw new BackupError('it is cut off');
    files.set(header.name, content);
    at += BLOCK + header.size + padding(header.size).length;
  }
  for (const needed of ['backup.json', 'store.db', 'pki/ca.crt', 'pki/ca.key']) {
    if (!files.has(needed)) throw new BackupError(`there is no ${needed} in it`);
  }
  return files;
}

function headerAt(bytes: Buffer, at: number): ReturnType<typeof parseTarHeader> {
  try {
    return parseTarHeader(bytes.subarray(at, at + BLOCK));
  } catch (cause) {
    throw new BackupError('it is damaged', { cause });
  }
}

function unzipped(archive: Buffer): Buffer {
  try {
    return gunzipSync(archive, { maxOutputLength: MAX_BYTES });
  } catch (cause) {
    throw new BackupError('it is no archive that selfsame backup made, or it is damaged', { cause });
  }
}
