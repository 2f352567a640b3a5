/** Says what is wrong with a store's file, and what can be done. Errors cross the thread border as these values. */

/** The file cannot be trusted. Its message is for people; nothing was changed. */
export class Damage extends Error {
  override name = 'Damage';
  constructor(file: string, found: string, advice = RESTORE) {
    super(`Cannot open ${file}: ${found}; ${advice}. Nothing was changed`);
  }
}

/** The file is not reachable now; it may be later. */
export class Unreachable extends Error {
  override name = 'Unreachable';
}

const RESTORE = 'restore it from a backup, or move it away (with its -wal file, if there is one) to start empty';

/** In statements that are ours: the tables are not. */
const SQLITE_ERROR = 1;
const SQLITE_BUSY = 5;
const SQLITE_LOCKED = 6;
const SQLITE_IOERR = 10;
const SQLITE_CORRUPT = 11;
const SQLITE_FULL = 13;
const SQLITE_CANTOPEN = 14;
const SQLITE_NOTADB = 26;

/** The primary result code; extended ones carry it in their low byte. Undefined when it is not SQLite's error. */
function sqliteCode(error: unknown): number | undefined {
  const code = (error as { errcode?: unknown } | undefined)?.errcode;
  return typeof code === 'number' ? code & 0xff : undefined;
}

export function isRoomOrDiskFault(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === SQLITE_IOERR || code === SQLITE_FULL || code === SQLITE_CANTOPEN;
}

export function openFault(file: string, error: unknown): Damage | Unreachable {
  if (error instanceof Damage || error instanceof Unreachable) return error;
  const code = sqliteCode(error);
  if (code === SQLITE_CORRUPT || code === SQLITE_NOTADB || code === SQLITE_ERROR)
    return new Damage(file, `it is damaged (${text(error)})`);
  if (code === SQLITE_BUSY || code === SQLITE_LOCKED) {
    return new Unreachable(`Cannot open ${file}: another process uses it; stop that process first`, { cause: error });
  }
  return new Unreachable(`Cannot open ${file}: ${text(error)}`, { cause: error });
}

export function writeFault(file: string, error: unknown): Unreachable {
  if (error instanceof Unreachable) return error;
  return new Unreachable(`Cannot write to ${file}: ${text(error)}; ${writeAdvice(error)}`, { cause: error });
}

function writeAdvice(error: unknown): string {
  switch (sqliteCode(error)) {
    case SQLITE_FULL:
      return 'free some space on its file system, then writes work again; reads go on';
    case SQLITE_IOERR:
      return 'look after the disk, then writes work again; reads go on';
    default:
      return 'reads go on, the next write tries again';
  }
}

function text(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
