/** OVA out: descriptor, files, and last the manifest, because digests are known only when everything has gone by. */
import { createHash } from 'node:crypto';
import { printManifest } from '#formats/ova/manifest.ts';
import { BLOCK, padding, printTarHeader } from '#formats/ova/tar-header.ts';
import { pathFault } from '#formats/safe-path.ts';
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
  /** In the order in which the descriptor names them. */
  readonly files: AsyncIterable<OvaFile> | Iterable<OvaFile>;
  /** Seconds since 1970, for all files; 0 unless given, so that equal machines are equal files. */
  readonly modifiedSeconds?: number;
}

/** Throws where a file has more or fewer bytes than it said: the archive is then of no use. */
export async function* writeOva({
  name,
  descriptor,
  files,
  modifiedSeconds = 0,
}: OvaContent): AsyncGenerator<Uint8Array> {
  const digests = new Map<string, string>();
  const [ovf, mf] = [`${name}.ovf`, `${name}.mf`];
  yield* entry(textFile(ovf, descriptor), modifiedSeconds, digests);
  for await (const file of files) {
    invariant(![ovf, mf].includes(file.name) && !digests.has(file.name), `"${file.name}" is one file of the OVA`);
    yield* entry(file, modifiedSeconds, digests);
  }
  yield* entry(textFile(mf, printManifest(digests)), modifiedSeconds, new Map());
  yield Buffer.alloc(2 * BLOCK);
}

function textFile(name: string, text: string): OvaFile {
  const content = Buffer.from(text);
  return { name, size: content.length, content: [content] };
}

async function* entry(
  file: OvaFile,
  modifiedSeconds: number,
  digests: Map<string, string>,
): AsyncGenerator<Uint8Array> {
  const { name, size, content } = file;
  const fault = pathFault(name);
  if (fault !== undefined) throw new TypeError(`Cannot write "${name}" into an OVA: the name ${fault}`);
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
