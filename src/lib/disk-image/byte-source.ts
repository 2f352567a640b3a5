import type { FileHandle } from 'node:fs/promises';

/** Bytes that can be read at any position: a file, the beginning of a stream, or the disk inside an image. */
export interface ByteSource {
  /** The number of bytes. */
  readonly size: number;
  /** Returns the bytes, fewer at the end. Returns undefined if they cannot be determined. */
  read(length: number, at: number): Promise<Buffer | undefined>;
}

/** Returns the first `size` bytes of the file. */
export function fileSource(file: FileHandle, size: number): ByteSource {
  return {
    size,
    async read(length, at) {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, at);
      return buffer.subarray(0, bytesRead);
    },
  };
}

/** Returns a source of which only the beginning is known. */
export function beginningOf(prefix: Buffer, size: number): ByteSource {
  return {
    size,
    read: async (length, at) => {
      const end = Math.min(at + length, size);
      return end <= prefix.length ? prefix.subarray(at, Math.max(at, end)) : undefined;
    },
  };
}

/**
 * Returns exactly `length` bytes, or undefined if they are not known or do not exist. Any position is allowed: tables of
 * an image may name one that no file has.
 */
export async function readExactly(source: ByteSource, length: number, at: number): Promise<Buffer | undefined> {
  if (at + length > source.size) return undefined;
  const bytes = await source.read(length, at);
  return bytes?.length === length ? bytes : undefined;
}
