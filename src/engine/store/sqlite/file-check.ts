/**
 * Looks at a store's file before SQLite does, without changing anything: SQLite would take an empty file for a new
 * database and would replay a log that belongs to another one.
 */
import { readSync, openSync, closeSync, fstatSync, statSync } from 'node:fs';
import { Damage } from './faults.ts';
import { APPLICATION_ID, FORMAT } from './format.ts';

const MAGIC = 'SQLite format 3\0';
const HEADER_BYTES = 100;
const USER_VERSION_OFFSET = 60;
const APPLICATION_ID_OFFSET = 68;

/** Whether there is a file of ours. Throws Damage when there is something else. */
export function checkFile(file: string): 'ours' | 'absent' {
  const header = readHeader(file);
  if (header) {
    const found = describeForeign(header);
    if (found) throw new Damage(file, found.what, found.advice);
    return 'ours';
  }
  for (const sidecar of [`${file}-wal`, `${file}-journal`]) {
    if (sizeOf(sidecar) > 0) throw new Damage(file, `it is missing, but ${sidecar} of it is there`);
  }
  return 'absent';
}

interface Foreign {
  readonly what: string;
  readonly advice?: string;
}

/** What makes the first bytes of a file not ours. */
export function describeForeign(header: Buffer): Foreign | undefined {
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
      what: `it has format ${format}, newer than the ${FORMAT} known here`,
      advice: 'use the version that wrote it',
    };
  }
  return format === FORMAT ? undefined : { what: `it has the unknown format ${format}` };
}

/** Undefined when there is no such file; otherwise its first bytes, as many as there are. */
function readHeader(file: string): Buffer | undefined {
  let descriptor: number;
  try {
    descriptor = openSync(file, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    if (!fstatSync(descriptor).isFile()) throw new Damage(file, 'it is not a file', 'name another place');
    const header = Buffer.alloc(HEADER_BYTES);
    return header.subarray(0, readSync(descriptor, header, 0, HEADER_BYTES, 0));
  } finally {
    closeSync(descriptor);
  }
}

/** 0 when there is no such file. */
export function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
