/** Writes OVAs as a stream: descriptor, files, and the manifest last, because the digests are known only then. */
import { createHash } from 'node:crypto';
import { printManifest } from '#formats/ova/manifest.ts';
import { BLOCK, padding, printTarHeader } from '#formats/ova/tar-header.ts';
import { checkPath } from '#formats/safe-path.ts';
import { invariant } from '#lib/invariant.ts';

export interface OvaFile {
  readonly name: string;
  readonly size: number;
  /** Exactly `size` bytes. */
  readonly content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
}

export interface OvaContent {
  /** `<name>.ovf` is the descriptor, `<name>.mf` the manifest. */
  readonly name: string;
  readonly descriptor: string;
  /** In the order of the descriptor. */
  readonly files: AsyncIterable<OvaFile> | Iterable<OvaFile>;
  /** Seconds since 1970, for all files. Default: 0, so that equal machines give equal files. */
  readonly modifiedSeconds?: number;
}

/** Throws if a file does not have the announced size; the archive is then unusable. */
export async function* writeOva({
  name,
  descriptor,
  files,
  modifiedSeconds = 0,
}: OvaContent): AsyncGenerator<Uint8Array> {
  const digests = new Map<string, string>();
  const [ovf, mf] = [`${name}.ovf`, `${name}.mf`];
  yield* writeEntry(textFile(ovf, descriptor), modifiedSeconds, digests);
  for await (const file of files) {
    invariant(![ovf, mf].includes(file.name) && !digests.has(file.name), `"${file.name}" appears once in the OVA`);
    yield* writeEntry(file, modifiedSeconds, digests);
  }
  yield* writeEntry(textFile(mf, printManifest(digests)), modifiedSeconds, new Map());
  yield Buffer.alloc(2 * BLOCK);
}

function textFile(name: string, text: string): OvaFile {
  const content = Buffer.from(text);
  return { name, size: content.length, content: [content] };
}

async function* writeEntry(
  file: OvaFile,
  modifiedSeconds: number,
  digests: Map<string, string>,
): AsyncGenerator<Uint8Array> {
  const { name, size, content } = file;
  const problem = checkPath(name);
  if (problem !== undefined) throw new TypeError(`Cannot write "${name}" into an OVA: the name ${problem}`);
  const hash = createHash('sha256');
  let written = 0;
  yield printTarHeader(name, size, modifiedSeconds);
  for await (const piece of content) {
    written += piece.length;
    if (written > size) break;
    hash.update(piece);
    yield piece;
  }
  if (written !== size)
    throw new RangeError(
      `Cannot write "${name}" into an OVA: it has ${written > size ? 'more' : 'fewer'} than ${size} bytes`,
    );
  yield padding(size);
  digests.set(name, hash.digest('hex'));
}
