/**
 * A tar archive as it streams by: each file with its content, once and in order. Nothing is kept but the piece that is
 * being read; names that lead outside, links and devices end it.
 */
import { quoted } from '#formats/faults.ts';
import { ByteSource } from '#formats/ova/byte-source.ts';
import { BLOCK, parsePax, parseTarHeader, padding, tarFault, textIn, type TarHeader } from '#formats/ova/tar-header.ts';
import { pathFault } from '#formats/safe-path.ts';

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
  /** May be read once, and only until the next file is asked for; what is left unread is skipped. */
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
      if (entries > limits.entries) throw tarFault(`there are more than ${limits.entries} files`);
      const header = await nextHeader(source);
      if (header === undefined) return;
      const { name, size, type } = header;
      const fault = name.includes('\u{FFFD}') ? 'is not encoded in UTF-8' : pathFault(name);
      if (fault !== undefined) throw tarFault(`the name ${quoted(name)} ${fault}`);
      if (type === 'directory') continue;
      if (names.has(name)) throw tarFault(`${quoted(name)} is there twice`);
      names.add(name);
      total += size;
      if (size > limits.fileBytes) throw tarFault(`${quoted(name)} has ${size} bytes, more than ${limits.fileBytes}`);
      if (total > limits.totalBytes) throw tarFault(`it has more than ${limits.totalBytes} bytes`);
      const content = source.content(size);
      yield { name, size, content };
      for await (const skipped of content) void skipped;
      await source.exactly(padding(size).length);
    }
  } finally {
    await source.close();
  }
}

/** The next file or directory, with the long name or size that stands before it. */
async function nextHeader(source: ByteSource): Promise<TarHeader | undefined> {
  let said: { path?: string; size?: number } = {};
  for (let extended = 0; extended < 8; extended++) {
    const header = parseTarHeader(await source.exactly(BLOCK));
    if (header === undefined || header.type === 'file' || header.type === 'directory') {
      if (header === undefined) return undefined;
      const name = (said.path ?? header.name).replace(/^(?:\.\/)+/, '').replace(/\/$/, '');
      // The archive's own directory.
      if (header.type === 'directory' && (name === '' || name === '.')) {
        said = {};
        continue;
      }
      return { ...header, name, size: said.size ?? header.size };
    }
    if (header.size > MAX_EXTENDED) throw tarFault('an extended header is too long');
    const body = await source.exactly(header.size);
    await source.exactly(padding(header.size).length);
    if (header.type === 'long-name') said = { ...said, path: textIn(body) };
    if (header.type === 'pax') said = { ...said, ...parsePax(body) };
  }
  throw tarFault('there are too many headers in a row');
}
