/**
 * Checks a store's file before SQLite opens it, without changing it. SQLite would treat an empty file as a new database
 * and replay a log that belongs to another file.
 */
import { readSync, openSync, closeSync, fstatSync, statSync } from 'node:fs';
import { FileDamagedError } from '#engine/store/sqlite/file-errors.ts';
import { APPLICATION_ID, FORMAT } from '#engine/store/sqlite/format.ts';

const MAGIC = 'SQLite format 3\0';
const HEADER_BYTES = 100;
const USER_VERSION_OFFSET = 60;
const APPLICATION_ID_OFFSET = 68;

/** Reports whether a store file exists. Throws FileDamagedError if there is a different file. */
export function checkFile(file: string): 'ours' | 'absent' {
  const header = readHeader(file);
  if (header) {
    const found = findFormatMismatch(header);
    if (found) throw new FileDamagedError(file, found.what, found.advice);
    return 'ours';
  }
  for (const sidecar of [`${file}-wal`, `${file}-journal`]) {
    if (sizeOf(sidecar) > 0) throw new FileDamagedError(file, `it is missing, but its ${sidecar} exists`);
  }
  return 'absent';
}

interface FormatMismatch {
  readonly what: string;
  readonly advice?: string;
}

/** Returns why the first bytes of a file are not those of a store file, or undefined if they are. */
function findFormatMismatch(header: Buffer): FormatMismatch | undefined {
  if (header.length === 0) return { what: 'it is empty' };
  if (header.toString('latin1', 0, MAGIC.length) !== MAGIC) return { what: 'it is not a database' };
  if (header.length < HEADER_BYTES) return { what: `it ends after ${header.length} bytes` };
  const application = header.readUInt32BE(APPLICATION_ID_OFFSET);
  if (application !== APPLICATION_ID) {
    return { what: `it belongs to another program (application id 0x${application.toString(16)})` };
  }
  const format = header.readUInt32BE(USER_VERSION_OFFSET);
  if (format > FORMAT) {
    return {
      what: `it has format ${format}, newer than the supported ${FORMAT}`,
      advice: 'use the Selfsame version that wrote it',
    };
  }
  return format === FORMAT ? undefined : { what: `it has the unknown format ${format}` };
}

/** Returns the first bytes of a file, as many as there are, or undefined if it does not exist. */
function readHeader(file: string): Buffer | undefined {
  let descriptor: number;
  try {
    descriptor = openSync(file, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    if (!fstatSync(descriptor).isFile()) throw new FileDamagedError(file, 'it is not a file', 'choose another path');
    const header = Buffer.alloc(HEADER_BYTES);
    return header.subarray(0, readSync(descriptor, header, 0, HEADER_BYTES, 0));
  } finally {
    closeSync(descriptor);
  }
}

/** Returns the size of a file, or 0 if it does not exist. */
export function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
