/** Errors of a store's file, with advice. They cross the thread boundary as messages. */
import { errorMessage } from '#lib/error-message.ts';

/** The file is damaged. Nothing was changed. */
export class FileDamagedError extends Error {
  override name = 'FileDamagedError';
  constructor(file: string, found: string, advice = RESTORE) {
    super(`Cannot open ${file}: ${found}; ${advice}. Nothing was changed`);
  }
}

/** The file cannot be accessed now. A later attempt may succeed. */
export class FileUnavailableError extends Error {
  override name = 'FileUnavailableError';
}

const RESTORE = 'restore it from a backup, or move it away (with its -wal file, if any) to start empty';

/** SQLITE_ERROR for our own statements means that the tables are not ours. */
const SQLITE_ERROR = 1;
const SQLITE_BUSY = 5;
const SQLITE_LOCKED = 6;
const SQLITE_IOERR = 10;
const SQLITE_CORRUPT = 11;
const SQLITE_FULL = 13;
const SQLITE_CANTOPEN = 14;
const SQLITE_NOTADB = 26;

/** Returns the primary result code, which extended codes carry in their low byte, or undefined for other errors. */
function sqliteCode(error: unknown): number | undefined {
  const code = (error as { errcode?: unknown } | undefined)?.errcode;
  return typeof code === 'number' ? code & 0xff : undefined;
}

export function isDiskFull(error: unknown): boolean {
  return sqliteCode(error) === SQLITE_FULL;
}

export function isDiskFullOrIoError(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === SQLITE_IOERR || code === SQLITE_FULL || code === SQLITE_CANTOPEN;
}

export function toOpenError(file: string, error: unknown): FileDamagedError | FileUnavailableError {
  if (error instanceof FileDamagedError || error instanceof FileUnavailableError) return error;
  const code = sqliteCode(error);
  if (code === SQLITE_CORRUPT || code === SQLITE_NOTADB || code === SQLITE_ERROR)
    return new FileDamagedError(file, `it is damaged (${errorMessage(error)})`);
  if (code === SQLITE_BUSY || code === SQLITE_LOCKED) {
    return new FileUnavailableError(`Cannot open ${file}: another process uses it; stop that process first`, {
      cause: error,
    });
  }
  return new FileUnavailableError(`Cannot open ${file}: ${errorMessage(error)}`, { cause: error });
}

export function toWriteError(file: string, error: unknown): FileUnavailableError {
  if (error instanceof FileUnavailableError) return error;
  return new FileUnavailableError(`Cannot write to ${file}: ${errorMessage(error)}; ${writeAdvice(error)}`, {
    cause: error,
  });
}

function writeAdvice(error: unknown): string {
  switch (sqliteCode(error)) {
    case SQLITE_FULL:
      return 'free space on its file system to make writes work again; reads still work';
    case SQLITE_IOERR:
      return 'check the disk to make writes work again; reads still work';
    default:
      return 'reads still work, and the next write tries again';
  }
}
