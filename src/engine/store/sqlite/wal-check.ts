/**
 * Distinguishes a damaged write-ahead log from one that merely ends early. SQLite reads the log up to the first bad frame
 * and silently ignores the rest: that is right after a crash during a commit, and wrong if a byte in the middle changed.
 *
 * Each commit is synced before the next begins, so a crash leaves at most one broken transaction, the last one. If frames
 * of the same generation (salts) follow the transaction of the bad frame, acknowledged commits would be lost.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { FileDamagedError } from '#engine/store/sqlite/file-errors.ts';

/** Checksums in little-endian words, which both supported platforms write. */
const MAGIC = 0x377f0682;
const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;

type Sums = readonly [number, number];

/** Throws FileDamagedError if the log is damaged. Does nothing if there is no log. */
export function checkWal(file: string): void {
  let descriptor: number;
  try {
    descriptor = openSync(`${file}-wal`, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  try {
    const found = findDamage(fstatSync(descriptor).size, (target, position) => {
      readSync(descriptor, target, 0, target.length, position);
    });
    if (found) throw new FileDamagedError(file, `its log ${file}-wal is damaged (${found})`);
  } finally {
    closeSync(descriptor);
  }
}

/** Checks a log of `size` bytes. `read` fills its target from a position. */
function findDamage(size: number, read: (target: Buffer, position: number) => void): string | undefined {
  if (size < HEADER_BYTES) return undefined;
  const header = allocateAligned(HEADER_BYTES);
  read(header, 0);
  // Space that the file system allocated before a crash, without any data.
  if (header.every((byte) => byte === 0)) return undefined;
  const headerSums = checksum([0, 0], header.subarray(0, 24));
  if (header.readUInt32BE(0) !== MAGIC || !sumsAt(header, 24, headerSums))
    return 'its header does not match its checksum';

  const frame = allocateAligned(FRAME_HEADER_BYTES + header.readUInt32BE(8));
  const frames = Math.floor((size - HEADER_BYTES) / frame.length);
  let sums = headerSums;
  let firstBad: number | undefined;
  let transactionEnded = false;
  for (let i = 0; i < frames; i++) {
    read(frame, HEADER_BYTES + i * frame.length);
    const sameGeneration = frame.compare(header, 16, 24, 8, 16) === 0;
    if (firstBad === undefined) {
      sums = checksum(checksum(sums, frame.subarray(0, 8)), frame.subarray(FRAME_HEADER_BYTES));
      if (sameGeneration && sumsAt(frame, 16, sums)) continue;
      firstBad = i;
    }
    if (!sameGeneration) continue;
    if (transactionEnded) return `frame ${firstBad + 1} of ${frames} is bad, but commits follow it`;
    transactionEnded = frame.readUInt32BE(4) !== 0;
  }
  return undefined;
}

/** Computes SQLite's checksum: two sums over pairs of 32-bit words. */
function checksum([first, second]: Sums, bytes: Buffer): Sums {
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  let a = first;
  let b = second;
  for (let i = 0; i < words.length; i += 2) {
    a = (a + words[i]! + b) >>> 0;
    b = (b + words[i + 1]! + a) >>> 0;
  }
  return [a, b];
}

function sumsAt(bytes: Buffer, offset: number, [a, b]: Sums): boolean {
  return bytes.readUInt32BE(offset) === a && bytes.readUInt32BE(offset + 4) === b;
}

/** Allocates a buffer that can be read as words. */
function allocateAligned(bytes: number): Buffer {
  return Buffer.from(new ArrayBuffer(bytes));
}
