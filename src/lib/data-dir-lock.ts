/**
 * One process at a time in a data directory. The lock is SQLite's lock on `<dir>/lock`, held by an open exclusive
 * transaction: the kernel lets go of it when the process ends, however it ends, so a stale lock cannot exist.
 * `<dir>/server.pid` only tells people who holds it; it decides nothing.
 */
import { accessSync, constants, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

const LOCK_FILE = 'lock';
const PID_FILE = 'server.pid';
const PRIVATE_DIR = 0o700;
const PRIVATE_FILE = 0o600;
/** SQLITE_BUSY, without its extended part. */
const BUSY = 5;

/** The directory cannot be used; the message says why and what to do. */
export class DataDirError extends Error {
  override name = 'DataDirError';
}

export class DataDirBusyError extends DataDirError {
  override name = 'DataDirBusyError';
  /** Undefined in the short moment in which the holder has not written it yet. */
  readonly pid: number | undefined;

  constructor(dir: string, pid: number | undefined) {
    const holder = pid === undefined ? 'another process' : `process ${pid}`;
    super(`Cannot use data directory "${dir}": it is held by ${holder}; stop it first or choose another --data-dir`);
    this.pid = pid;
  }
}

export class DataDirLock {
  readonly dir: string;
  #database: DatabaseSync | undefined;

  constructor(dir: string, database: DatabaseSync) {
    this.dir = dir;
    this.#database = database;
  }

  /** Lets others in. A repeated call does nothing. */
  release(): void {
    if (this.#database === undefined) return;
    // While the lock is still held, so that the pid of a successor is never removed.
    rmSync(join(this.dir, PID_FILE), { force: true });
    this.#database.close();
    this.#database = undefined;
  }
}

/** Makes the directory (0700) where it is missing and takes its lock. Throws DataDirError, DataDirBusyError. */
export function acquireDataDir(dir: string): DataDirLock {
  makeWritable(dir);
  const database = lockDatabase(dir);
  try {
    writePid(dir);
  } catch (cause) {
    database.close();
    throw unusable(dir, cause);
  }
  return new DataDirLock(dir, database);
}

function makeWritable(dir: string): void {
  try {
    makeDir(resolve(dir));
    accessSync(dir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (cause) {
    throw unusable(dir, cause);
  }
}

/** Not mkdir's `recursive`: that one loops for ever where a parent exists but mkdir says ENOENT (below /proc). */
function makeDir(dir: string): void {
  if (statSync(dir, { throwIfNoEntry: false })?.isDirectory() === true) return;
  if (dirname(dir) !== dir) makeDir(dirname(dir));
  try {
    mkdirSync(dir, { mode: PRIVATE_DIR });
  } catch (error) {
    // Another process made it in between; the lock decides between the two.
    if (!statSync(dir, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}

function lockDatabase(dir: string): DatabaseSync {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(join(dir, LOCK_FILE));
    // Nothing is ever written, so no journal is needed beside it.
    database.exec('PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
    return database;
  } catch (cause) {
    database?.close();
    if (isBusy(cause)) throw new DataDirBusyError(dir, readPid(dir));
    throw unusable(dir, cause);
  }
}

function isBusy(error: unknown): boolean {
  const code = (error as { errcode?: unknown }).errcode;
  return typeof code === 'number' && (code & 0xff) === BUSY;
}

/** Through a rename, so that nobody reads half a number. */
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

function unusable(dir: string, cause: unknown): DataDirError {
  const { message } = cause as Error;
  const text = `Cannot use data directory "${dir}": ${message}; expected a directory that this user may write to`;
  return new DataDirError(text, { cause });
}
