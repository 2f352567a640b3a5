/**
 * The lines of an audit log from the oldest on, and where that is wanted those that are still to come. The server may
 * write, rotate and remove files meanwhile: a file is known by its inode, and the one after it is looked up by that.
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
/** Of one line; what is longer is none of ours. */
const MAX_LINE_BYTES = 4 * 1024 * 1024;
const POLL_MS = 250;
const NEWLINE = 0x0a;

export interface ReadOptions {
  readonly dir: string;
  /** Ends only with the signal. */
  readonly follow: boolean;
  /** Files whose last line is older are passed over. */
  readonly sinceMs?: number | undefined;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** A last line without its end is left out: it is still being written, or was never finished. */
export async function* readLog(options: ReadOptions): AsyncGenerator<string, void, undefined> {
  const { dir, follow, clock, signal } = options;
  let known = NOTHING;
  while (!signal.aborted) {
    const next = await nextFile(options, known);
    if (next === undefined) {
      if (!follow) return;
      await pause(clock, signal);
      continue;
    }
    const handle = await openFile(join(dir, next.name));
    if (handle === undefined) continue;
    try {
      known = { inode: inodeOf(await handle.stat({ bigint: true })), number: next.before };
      yield* fileLines(handle, async () => {
        // The last lines may have come just before the rotation, after our look.
        if ((await nextFile(options, known)) !== undefined) return 'last look';
        if (!follow) return 'end';
        await pause(clock, signal);
        return signal.aborted ? 'end' : 'look again';
      });
    } finally {
      await handle.close();
    }
  }
}

/** Where a reader is. */
interface Place {
  readonly inode: string;
  /** Files with this number and below are read. */
  readonly number: number;
}

const NOTHING: Place = { inode: '', number: -1 };

type AtEnd = 'end' | 'look again' | 'last look';

/** `atEnd` says what to do where there is nothing more for now. */
async function* fileLines(handle: FileHandle, atEnd: () => Promise<AtEnd>): AsyncGenerator<string, void, undefined> {
  const piece = Buffer.alloc(PIECE_BYTES);
  let rest: Buffer = Buffer.alloc(0);
  let isLast = false;
  for (;;) {
    const { bytesRead } = await handle.read(piece, 0, PIECE_BYTES, null);
    if (bytesRead === 0) {
      if (isLast) return;
      const then = await atEnd();
      if (then === 'end') return;
      isLast = then === 'last look';
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
  /** The highest number up to and with it. */
  readonly before: number;
}

/** The file after that; where that is gone, the first that was not read. */
async function nextFile({ dir, sinceMs = 0 }: ReadOptions, known: Place): Promise<LogFile | undefined> {
  const files: (LogFile & { number: number; inode: string; isWanted: boolean })[] = [];
  for (const name of await filesIn(dir)) {
    const found = await stat(join(dir, name), { bigint: true }).catch(absent);
    if (found?.isFile() !== true) continue;
    const number = name === CURRENT ? Number.POSITIVE_INFINITY : numberOf(name);
    const before = name === CURRENT ? (files.at(-1)?.number ?? 0) : number;
    const isWanted = name === CURRENT || Number(found.mtimeMs) >= sinceMs;
    files.push({ name, number, before, inode: inodeOf(found), isWanted });
  }
  const at = files.findIndex(({ inode }) => inode === known.inode);
  const left = at >= 0 ? files.slice(at + 1) : files.filter(({ number }) => number > known.number);
  return left.find(({ isWanted }) => isWanted);
}

const inodeOf = ({ dev, ino }: { dev: bigint; ino: bigint }) => `${dev}:${ino}`;

/** The oldest first. */
async function filesIn(dir: string): Promise<string[]> {
  const names = (await readdir(dir).catch(absent)) ?? [];
  const rotated = names.filter((name) => ROTATED.test(name)).toSorted((a, b) => numberOf(a) - numberOf(b));
  return names.includes(CURRENT) ? [...rotated, CURRENT] : rotated;
}

const numberOf = (name: string) => Number(ROTATED.exec(name)?.[1]);

async function openFile(path: string): Promise<FileHandle | undefined> {
  return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW).catch(absent);
}

function absent(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
  throw error;
}

async function pause(clock: Clock, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const cancel = clock.after(POLL_MS, () => {
      signal.removeEventListener('abort', leave);
      resolve();
    });
    const leave = (): void => {
      cancel();
      resolve();
    };
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave, { once: true });
  });
}
