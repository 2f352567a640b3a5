/** An image file of the user: what it is, how large it is, and its bytes as they go into a disk. */
import { spawn } from 'node:child_process';
import { createHash, type Hash } from 'node:crypto';
import { createReadStream, type ReadStream } from 'node:fs';
import { createGunzip } from 'node:zlib';
import type { DiskStreamFormat } from '#api/disk-stream.ts';
import { foreignFormat, HEADER_BYTES, readImageHeader } from '#api/image-header.ts';
import { CommandError } from '#cli/flags.ts';
import { fileSize } from '#cli/local-files.ts';
import { messageOf } from '#cli/message-of.ts';

const READ_BYTES = 256 * 1024;
const MAX_SAID = 1000;
const COMPRESSED = ['gzip', 'xz'] as const;
type Compression = (typeof COMPRESSED)[number];

export interface LocalImage {
  readonly path: string;
  readonly format: DiskStreamFormat;
  /** How many bytes it has, decompressed. */
  readonly size: number;
  /** As large as a guest sees it. */
  readonly virtualSize: number;
  readonly compression?: Compression;
  /** Each call from the beginning. Throws CommandError. */
  chunks(from?: number): AsyncIterable<Buffer>;
}

/**
 * What is compressed is read to its end once, to know how large it is: `say` is told, because that may take a while.
 * Throws CommandError for what cannot become a disk.
 */
export async function openImage(path: string, say: (line: string) => void): Promise<LocalImage> {
  const bytes = await fileSize(path);
  const begins = await firstBytes(createReadStream(path, { end: HEADER_BYTES - 1 }), path);
  const compression = COMPRESSED.find((one) => one === foreignFormat(begins));
  const chunks = (from = 0) => skipping(bytesOf(path, compression), from, path);
  const header = compression === undefined ? begins : await firstBytes(chunks(), path);
  const looks = checked(path, header);
  if (compression !== undefined) say(`${path} is compressed with ${compression}: reading it to determine its size`);
  const size = compression === undefined ? bytes : await countBytes(chunks());
  if (size === 0) throw new CommandError(`Cannot upload ${path}: it is empty`);
  const virtualSize = looks.is === 'qcow2' ? looks.virtualBytes : size;
  return { path, format: looks.is, size, virtualSize, chunks, ...(compression && { compression }) };
}

function checked(path: string, header: Buffer) {
  const foreign = foreignFormat(header);
  if (foreign !== undefined) {
    const how = (COMPRESSED as readonly string[]).includes(foreign) ? 'decompress it' : TO_QCOW2;
    throw new CommandError(`Cannot upload ${path}: its format is ${foreign}; expected raw or qcow2: ${how} first`);
  }
  const looks = readImageHeader(header);
  if (looks.is === 'refused') {
    throw new CommandError(`Cannot upload ${path}: ${looks.why}; expected a raw or a self-contained qcow2 image`);
  }
  return looks;
}

const TO_QCOW2 = 'convert it with "qemu-img convert -O qcow2"';

async function* bytesOf(path: string, compression: Compression | undefined): AsyncGenerator<Buffer> {
  if (compression === 'xz') {
    yield* unxz(path);
    return;
  }
  const file = createReadStream(path, { highWaterMark: READ_BYTES });
  try {
    // A file that is cut off is an error, and no short one.
    yield* compression === 'gzip' ? unpacked(file) : (file as AsyncIterable<Buffer>);
  } finally {
    file.destroy();
  }
}

function unpacked(file: ReadStream): AsyncIterable<Buffer> {
  const gunzip = createGunzip({ chunkSize: READ_BYTES });
  file.on('error', (error) => gunzip.destroy(error));
  return file.pipe(gunzip);
}

/** By the program xz: Node has no reader of it. */
async function* unxz(path: string): AsyncGenerator<Buffer> {
  const child = spawn('xz', ['--decompress', '--stdout', '--', path], { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => (said = (said + chunk.toString()).slice(-MAX_SAID)));
  const ended = new Promise<Error | undefined>((resolve) => {
    child.once('error', ({ code, message }: NodeJS.ErrnoException) =>
      resolve(new Error(code === 'ENOENT' ? 'the program xz is not installed' : message)),
    );
    child.once('close', (code) => resolve(code === 0 ? undefined : new Error(said.trim() || `xz ended with ${code}`)));
  });
  try {
    yield* child.stdout as AsyncIterable<Buffer>;
    const fault = await ended;
    if (fault !== undefined) throw fault;
  } catch (error) {
    throw (await ended) ?? error;
  } finally {
    child.kill();
  }
}

/** The bytes after the first `from`. */
async function* skipping(source: AsyncIterable<Buffer>, from: number, path: string): AsyncGenerator<Buffer> {
  let left = from;
  try {
    for await (const chunk of source) {
      if (left < chunk.length) yield chunk.subarray(left);
      left = Math.max(0, left - chunk.length);
    }
  } catch (cause) {
    throw new CommandError(`Cannot read ${path}: ${messageOf(cause)}`, { cause });
  }
}

async function firstBytes(source: AsyncIterable<Buffer>, path: string): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const piece of source) {
      pieces.push(piece);
      bytes += piece.length;
      if (bytes >= HEADER_BYTES) break;
    }
  } catch (cause) {
    throw cause instanceof CommandError
      ? cause
      : new CommandError(`Cannot read ${path}: ${messageOf(cause)}`, { cause });
  }
  return Buffer.concat(pieces).subarray(0, HEADER_BYTES);
}

async function countBytes(chunks: AsyncIterable<Buffer>): Promise<number> {
  let bytes = 0;
  for await (const { length } of chunks) bytes += length;
  return bytes;
}

/** Of the first `bytes`; undefined where it has fewer. */
export async function hashBeginning({ chunks }: LocalImage, bytes: number): Promise<Hash | undefined> {
  const hash = createHash('sha256');
  let left = bytes;
  if (left === 0) return hash;
  for await (const chunk of chunks()) {
    hash.update(chunk.subarray(0, left));
    left -= Math.min(left, chunk.length);
    if (left === 0) return hash;
  }
  return undefined;
}
