/**
 * Reads a tar archive as a stream: each file with its content, once and in order. Only the current piece is kept in
 * memory. Unsafe names, links and devices are refused.
 */
import { quoteText } from '#formats/findings.ts';
import { ByteSource } from '#formats/ova/byte-source.ts';
import {
  BLOCK,
  parsePax,
  parseTarHeader,
  padding,
  tarError,
  decodeText,
  type TarHeader,
} from '#formats/ova/tar-header.ts';
import { checkPath } from '#formats/safe-path.ts';

export interface TarLimits {
  readonly entries: number;
  readonly fileBytes: number;
  readonly totalBytes: number;
}

export const TAR_LIMITS: TarLimits = { entries: 1024, fileBytes: 16 * 1024 ** 4, totalBytes: 64 * 1024 ** 4 };
const MAX_EXTENDED = 64 * 1024;

export interface TarFile {
  readonly name: string;
  readonly size: number;
  /** Can be read once, and only until the next file is requested; the rest is skipped. */
  readonly content: AsyncIterable<Uint8Array>;
}

export async function* readTar(
  chunks: AsyncIterable<Uint8Array>,
  limits: TarLimits = TAR_LIMITS,
): AsyncGenerator<TarFile, void, undefined> {
  const source = new ByteSource(chunks);
  const names = new Set<string>();
  let total = 0;
  try {
    for (let entries = 0; ; entries++) {
      if (entries > limits.entries) throw tarError(`there are more than ${limits.entries} files`);
      const header = await readHeader(source);
      if (header === undefined) return;
      const { name, size, type } = header;
      const problem = name.includes('\u{FFFD}') ? 'is not encoded in UTF-8' : checkPath(name);
      if (problem !== undefined) throw tarError(`the name ${quoteText(name)} ${problem}`);
      if (type === 'directory') continue;
      if (names.has(name)) throw tarError(`${quoteText(name)} appears twice`);
      names.add(name);
      total += size;
      if (size > limits.fileBytes)
        throw tarError(`${quoteText(name)} has ${size} bytes, more than ${limits.fileBytes}`);
      if (total > limits.totalBytes) throw tarError(`it has more than ${limits.totalBytes} bytes`);
      const content = source.stream(size);
      yield { name, size, content };
      for await (const skipped of content) void skipped;
      await source.readExactly(padding(size).length);
    }
  } finally {
    await source.close();
  }
}

/** Reads the header of the next file or directory, including a long name or size from extended headers before it. */
async function readHeader(source: ByteSource): Promise<TarHeader | undefined> {
  let overrides: { path?: string; size?: number } = {};
  for (let extended = 0; extended < 8; extended++) {
    const header = parseTarHeader(await source.readExactly(BLOCK));
    if (header === undefined || header.type === 'file' || header.type === 'directory') {
      if (header === undefined) return undefined;
      const name = (overrides.path ?? header.name).replace(/^(?:\.\/)+/, '').replace(/\/$/, '');
      // The entry of the archived directory itself.
      if (header.type === 'directory' && (name === '' || name === '.')) {
        overrides = {};
        continue;
      }
      return { ...header, name, size: overrides.size ?? header.size };
    }
    if (header.size > MAX_EXTENDED) throw tarError('an extended header is too long');
    const body = await source.readExactly(header.size);
    await source.readExactly(padding(header.size).length);
    if (header.type === 'long-name') overrides = { ...overrides, path: decodeText(body) };
    if (header.type === 'pax') overrides = { ...overrides, ...parsePax(body) };
  }
  throw tarError('there are too many headers in a row');
}
