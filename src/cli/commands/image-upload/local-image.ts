/** Opens a local image file: determines its format, size and boot loaders, and reads its content. */
import { spawn } from 'node:child_process';
import { createHash, type Hash } from 'node:crypto';
import { createReadStream, type ReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { createGunzip } from 'node:zlib';
import type { DiskStreamFormat } from '#api/storage/disk-stream.ts';
import { findUnsupportedFormat } from '#api/storage/image-header.ts';
import { CommandError } from '#lib/command-line/command-error.ts';
import { checkHeader, inspectImage } from '#cli/commands/image-upload/inspect-image.ts';
import { fileSize } from '#cli/transfer/local-files.ts';
import type { BootSupport } from '#lib/disk-image/boot-support.ts';
import { beginningOf, fileSource, type ByteSource } from '#lib/disk-image/byte-source.ts';
import { SIGNS_BYTES } from '#lib/disk-image/disk-signs.ts';
import { convertedBytes } from '#lib/disk-image/qcow2-image.ts';
import { errorMessage } from '#lib/error-message.ts';

const READ_BYTES = 256 * 1024;
const ZEROS = Buffer.alloc(READ_BYTES);
/** The unit of the number of blocks of a file. */
const BLOCK_BYTES = 512;
const MAX_STDERR = 1000;
/** The bytes of a compressed image that are inspected; enough for a GPT and most boot catalogs. */
const PREFIX_BYTES = 1024 * 1024;
const COMPRESSED = ['gzip', 'xz'] as const;
type Compression = (typeof COMPRESSED)[number];

export interface LocalImage {
  readonly path: string;
  readonly format: DiskStreamFormat;
  /** The size in bytes after decompression. */
  readonly size: number;
  /** The size of the disk as the guest sees it. */
  readonly virtualSize: number;
  /** The number of bytes that a node stores: all but zeros. Holes of the file count as zeros. */
  readonly dataBytes: number;
  /** The number of bytes that a node stores after the conversion of a qcow2 image; undefined if it is not known. */
  readonly convertedBytes?: number;
  readonly compression?: Compression;
  /** The firmware that finds a boot loader in the image; undefined if it is not known. */
  readonly boot?: BootSupport;
  /** Reads the content, starting at `from`. Throws CommandError. */
  chunks(from?: number): AsyncIterable<Buffer>;
}

interface OpenOptions {
  /** Called with notes about work that takes a while. */
  report(line: string): void;
  /** True to accept a file that has no sign of a disk or seems to be incomplete. */
  readonly force: boolean;
}

/**
 * Opens an image. A compressed file is read once to determine its size. Throws CommandError if the file cannot be used as
 * a disk, or without `force` if it does not look like a complete one.
 */
export async function openImage(path: string, { report, force }: OpenOptions): Promise<LocalImage> {
  const bytes = await fileSize(path);
  const first = await readPrefix(createReadStream(path, { end: SIGNS_BYTES - 1 }), path, SIGNS_BYTES);
  const compression = COMPRESSED.find((one) => one === findUnsupportedFormat(first));
  const chunks = (from = 0) => skipBytes(bytesOf(path, compression), from, path);
  const prefix = compression === undefined ? first : await readPrefix(chunks(), path, PREFIX_BYTES);
  if (prefix.length === 0) throw new CommandError(`Cannot upload ${path}: it is empty`);
  const header = checkHeader(path, prefix, force);
  if (compression !== undefined) report(`${path} is compressed with ${compression}: reading it to determine its size`);
  const { size, dataBytes } =
    compression === undefined ? { size: bytes, dataBytes: await allocatedBytes(path, bytes) } : await count(chunks());
  const inspect = (file: ByteSource) => inspectImage(path, file, header.is, force);
  const { boot, data } =
    compression === undefined ? await withFile(path, bytes, inspect) : await inspect(beginningOf(prefix, size));
  const virtualSize = header.is === 'qcow2' ? header.virtualBytes : size;
  return {
    ...{ path, format: header.is, size, virtualSize, dataBytes, chunks },
    ...(compression && { compression }),
    // Of a compressed file, not all tables are known.
    ...(data && compression === undefined && { convertedBytes: convertedBytes(data, dataBytes) }),
    ...(boot && { boot }),
  };
}

async function withFile<T>(path: string, size: number, use: (file: ByteSource) => Promise<T>): Promise<T> {
  await using file = await open(path, 'r');
  return await use(fileSource(file, size));
}

async function* bytesOf(path: string, compression: Compression | undefined): AsyncGenerator<Buffer> {
  if (compression === 'xz') {
    yield* unxz(path);
    return;
  }
  const file = createReadStream(path, { highWaterMark: READ_BYTES });
  try {
    // A truncated file causes an error.
    yield* compression === 'gzip' ? gunzipFile(file) : (file as AsyncIterable<Buffer>);
  } finally {
    file.destroy();
  }
}

function gunzipFile(file: ReadStream): AsyncIterable<Buffer> {
  const gunzip = createGunzip({ chunkSize: READ_BYTES });
  file.on('error', (error) => gunzip.destroy(error));
  return file.pipe(gunzip);
}

/** Decompresses with the program xz, which Node.js does not support. */
async function* unxz(path: string): AsyncGenerator<Buffer> {
  const child = spawn('xz', ['--decompress', '--stdout', '--', path], { stdio: ['ignore', 'pipe', 'pipe'] });
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => (stderr = (stderr + chunk.toString()).slice(-MAX_STDERR)));
  const ended = new Promise<Error | undefined>((resolve) => {
    child.once('error', ({ code, message }: NodeJS.ErrnoException) =>
      resolve(new Error(code === 'ENOENT' ? 'the program xz is not installed' : message)),
    );
    child.once('close', (code) =>
      resolve(code === 0 ? undefined : new Error(stderr.trim() || `xz ended with ${code}`)),
    );
  });
  try {
    yield* child.stdout as AsyncIterable<Buffer>;
    const error = await ended;
    if (error !== undefined) throw error;
  } catch (error) {
    throw (await ended) ?? error;
  } finally {
    child.kill();
  }
}

/** Yields the bytes after the first `from` bytes. */
async function* skipBytes(source: AsyncIterable<Buffer>, from: number, path: string): AsyncGenerator<Buffer> {
  let left = from;
  try {
    for await (const chunk of source) {
      if (left < chunk.length) yield chunk.subarray(left);
      left = Math.max(0, left - chunk.length);
    }
  } catch (cause) {
    throw new CommandError(`Cannot read ${path}: ${errorMessage(cause)}`, { cause });
  }
}

async function readPrefix(source: AsyncIterable<Buffer>, path: string, maxBytes: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const piece of source) {
      pieces.push(piece);
      bytes += piece.length;
      if (bytes >= maxBytes) break;
    }
  } catch (cause) {
    throw cause instanceof CommandError
      ? cause
      : new CommandError(`Cannot read ${path}: ${errorMessage(cause)}`, { cause });
  }
  return Buffer.concat(pieces).subarray(0, maxBytes);
}

async function count(chunks: AsyncIterable<Buffer>): Promise<Pick<LocalImage, 'size' | 'dataBytes'>> {
  let [size, dataBytes] = [0, 0];
  for await (const chunk of chunks) {
    size += chunk.length;
    if (!chunk.equals(ZEROS.subarray(0, chunk.length))) dataBytes += chunk.length;
  }
  return { size, dataBytes };
}

async function allocatedBytes(path: string, size: number): Promise<number> {
  const { blocks } = await stat(path);
  return Math.min(size, blocks * BLOCK_BYTES);
}

/** Hashes the first `bytes` bytes; undefined if the image is shorter. */
export async function hashPrefix({ chunks }: LocalImage, bytes: number): Promise<Hash | undefined> {
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
