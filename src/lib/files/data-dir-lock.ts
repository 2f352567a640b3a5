/**
 * The lock that gives a data directory to one process at a time. It is SQLite's lock on `<dir>/lock`, held by an open
 * exclusive transaction. The kernel releases it when the process ends in any way, so a stale lock cannot exist.
 * `<dir>/server.pid` is only information for people about the holder.
 */
import { accessSync, constants, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

const LOCK_FILE = 'lock';
const PID_FILE = 'server.pid';
const PRIVATE_DIR = 0o700;
const PRIVATE_FILE = 0o600;
/** SQLITE_BUSY, the low byte of an extended result code. */
const BUSY = 5;

/** The directory cannot be used. The message says why and what to do. */
export class DataDirError extends Error {
  override name = 'DataDirError';
}

export class DataDirBusyError extends DataDirError {
  override name = 'DataDirBusyError';
  /** The process that holds the lock; undefined until it has written its pid. */
  readonly pid: number | undefined;

  constructor(dir: string, pid: number | undefined) {
    const holder = pid === undefined ? 'another process' : `process ${pid}`;
    super(`Cannot use data directory "${dir}": it is held by ${holder}; stop it first or choose another --data-dir`);
    this.pid = pid;
  }
}

class DataDirLock {
  readonly dir: string;
  #database: DatabaseSync | undefined;

  constructor(dir: string, database: DatabaseSync) {
    this.dir = dir;
    this.#database = database;
  }

  /** Releases the lock. A repeated call does nothing. */
  release(): void {
    if (this.#database === undefined) return;
    // Removed while the lock is still held, so that the pid of the next holder is never removed.
    rmSync(join(this.dir, PID_FILE), { force: true });
    this.#database.close();
    this.#database = undefined;
  }
}

/** Creates the directory (0700) if it is missing and takes its lock. Throws DataDirError or DataDirBusyError. */
export function acquireDataDir(dir: string): DataDirLock {
  ensureWritable(dir);
  const database = lockDatabase(dir);
  try {
    writePid(dir);
  } catch (cause) {
    database.close();
    throw unusableDirError(dir, cause);
  }
  return new DataDirLock(dir, database);
}

function ensureWritable(dir: string): void {
  try {
    makeDir(resolve(dir));
    accessSync(dir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (cause) {
    throw unusableDirError(dir, cause);
  }
}

/** Creates the directory and its parents. mkdir's `recursive` never returns if mkdir fails with ENOENT below /proc. */
function makeDir(dir: string): void {
  if (statSync(dir, { throwIfNoEntry: false })?.isDirectory() === true) return;
  if (dirname(dir) !== dir) makeDir(dirname(dir));
  try {
    mkdirSync(dir, { mode: PRIVATE_DIR });
  } catch (error) {
    // Another process created it in the meantime; the lock decides which of the two gets it.
    if (!statSync(dir, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}

function lockDatabase(dir: string): DatabaseSync {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(join(dir, LOCK_FILE));
    // Nothing is ever written, so the lock file needs no journal.
    database.exec('PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
    return database;
  } catch (cause) {
    database?.close();
    if (isBusy(cause)) throw new DataDirBusyError(dir, readPid(dir));
    throw unusableDirError(dir, cause);
  }
}

function isBusy(error: unknown): boolean {
  const code = (error as { errcode?: unknown }).errcode;
  return typeof code === 'number' && (code & 0xff) === BUSY;
}

/** Writes the pid to a temporary file and renames it, so that no process reads an incomplete number. */
function writePid(dir: string): void {
  const temporary = join(dir, `${PID_FILE}.tmp`);
  writeFileSync(temporary, `${process.pid}\n`, { mode: PRIVATE_FILE });
  renameSync(temporary, join(dir, PID_FILE));
}

function readPid(dir: string): number | undefined {
  try {
    const pid = Number(readFileSync(join(dir, PID_FILE), 'utf8').trim());
    return Number.isSafeInteger(pid) && pid > 0 ? pid : undefined;
  } catch {
    return undefined;
  }
}

function unusableDirError(dir: string, cause: unknown): DataDirError {
  const { message } = cause as Error;
  const text = `Cannot use data directory "${dir}": ${message}; expected a directory that this user may write to`;
  return new DataDirError(text, { cause });
}
