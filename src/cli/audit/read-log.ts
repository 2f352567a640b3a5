/**
 * Reads the lines of an audit log, oldest first, and optionally follows it. The server may write, rotate and remove files
 * meanwhile, so a file is identified by its inode, and the next file is the one after that inode.
 *
 *   audit-000041.log ─► audit-000042.log ─► audit.log
 */
import { constants } from 'node:fs';
import { open, readdir, stat, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '#lib/clock.ts';

const CURRENT = 'audit.log';
const ROTATED = /^audit-(\d{6,15})\.log$/;
const PIECE_BYTES = 256 * 1024;
/** Longer lines are skipped; the server does not write them. */
const MAX_LINE_BYTES = 4 * 1024 * 1024;
const POLL_MS = 250;
const NEWLINE = 0x0a;

export interface ReadOptions {
  readonly dir: string;
  /** True to wait for new lines until the signal aborts. */
  readonly follow: boolean;
  /** Files whose last line is older are skipped. */
  readonly sinceMs?: number | undefined;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Yields the lines. Omits a last line without a newline, which is incomplete. */
export async function* readLog(options: ReadOptions): AsyncGenerator<string, void, undefined> {
  const { dir, follow, clock, signal } = options;
  let known = NOTHING_READ;
  while (!signal.aborted) {
    const next = await nextFile(options, known);
    if (next === undefined) {
      if (!follow) return;
      await waitForPoll(clock, signal);
      continue;
    }
    const handle = await openFile(join(dir, next.name));
    if (handle === undefined) continue;
    try {
      known = { inode: inodeOf(await handle.stat({ bigint: true })), number: next.before };
      yield* readFileLines(handle, async () => {
        // Lines may have been written between the last read and the rotation, so the file is read once more.
        if ((await nextFile(options, known)) !== undefined) return 'read to the end';
        if (!follow) return 'stop';
        await waitForPoll(clock, signal);
        return signal.aborted ? 'stop' : 'read again';
      });
    } finally {
      await handle.close();
    }
  }
}

/** The file that was read last. */
interface ReadPosition {
  readonly inode: string;
  /** All files up to this number were read. */
  readonly number: number;
}

const NOTHING_READ: ReadPosition = { inode: '', number: -1 };

type EndAction = 'stop' | 'read again' | 'read to the end';

/** `atEnd` decides how to continue when there are no more bytes for now. */
async function* readFileLines(
  handle: FileHandle,
  atEnd: () => Promise<EndAction>,
): AsyncGenerator<string, void, undefined> {
  const piece = Buffer.alloc(PIECE_BYTES);
  let rest: Buffer = Buffer.alloc(0);
  let isLast = false;
  for (;;) {
    const { bytesRead } = await handle.read(piece, 0, PIECE_BYTES, null);
    if (bytesRead === 0) {
      if (isLast) return;
      const action = await atEnd();
      if (action === 'stop') return;
      isLast = action === 'read to the end';
      continue;
    }
    const bytes = Buffer.concat([rest, piece.subarray(0, bytesRead)]);
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
      if (end > start) yield bytes.toString('utf8', start, end);
      start = end + 1;
    }
    rest = bytes.subarray(start);
    if (rest.length > MAX_LINE_BYTES) rest = Buffer.alloc(0);
  }
}

interface LogFile {
  readonly name: string;
  /** The number of this file, or of the newest rotated file for the current one. */
  readonly before: number;
}

/** Returns the file after `known`, or the first file that was not read if `known` was removed. */
async function nextFile({ dir, sinceMs = 0 }: ReadOptions, known: ReadPosition): Promise<LogFile | undefined> {
  const files: (LogFile & { number: number; inode: string; isWanted: boolean })[] = [];
  for (const name of await listLogFiles(dir)) {
    const found = await stat(join(dir, name), { bigint: true }).catch(undefinedIfMissing);
    if (found?.isFile() !== true) continue;
    const number = name === CURRENT ? Number.POSITIVE_INFINITY : fileNumber(name);
    const before = name === CURRENT ? (files.at(-1)?.number ?? 0) : number;
    const isWanted = name === CURRENT || Number(found.mtimeMs) >= sinceMs;
    files.push({ name, number, before, inode: inodeOf(found), isWanted });
  }
  const at = files.findIndex(({ inode }) => inode === known.inode);
  const left = at >= 0 ? files.slice(at + 1) : files.filter(({ number }) => number > known.number);
  return left.find(({ isWanted }) => isWanted);
}

const inodeOf = ({ dev, ino }: { dev: bigint; ino: bigint }) => `${dev}:${ino}`;

/** Lists the log files, oldest first. */
async function listLogFiles(dir: string): Promise<string[]> {
  const names = (await readdir(dir).catch(undefinedIfMissing)) ?? [];
  const rotated = names.filter((name) => ROTATED.test(name)).toSorted((a, b) => fileNumber(a) - fileNumber(b));
  return names.includes(CURRENT) ? [...rotated, CURRENT] : rotated;
}

const fileNumber = (name: string) => Number(ROTATED.exec(name)?.[1]);

async function openFile(path: string): Promise<FileHandle | undefined> {
  return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW).catch(undefinedIfMissing);
}

function undefinedIfMissing(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
  throw error;
}

async function waitForPoll(clock: Clock, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const cancel = clock.after(POLL_MS, () => {
      signal.removeEventListener('abort', stopWaiting);
      resolve();
    });
    const stopWaiting = (): void => {
      cancel();
      resolve();
    };
    if (signal.aborted) stopWaiting();
    else signal.addEventListener('abort', stopWaiting, { once: true });
  });
}
