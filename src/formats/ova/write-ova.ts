/** Writes OVAs as a stream: descriptor, files, and the manifest last, because the digests are known only then. */
import { createHash } from 'node:crypto';
import { printManifest } from '#formats/ova/manifest.ts';
import { invariant } from '#lib/invariant.ts';
import { tarFile, writeTar, type TarContent } from '#lib/tar/write-tar.ts';

export type OvaFile = Omit<TarContent, 'type' | 'mode'>;

interface OvaContent {
  /** `<name>.ovf` is the descriptor, `<name>.mf` the manifest. */
  readonly name: string;
  readonly descriptor: string;
  /** In the order of the descriptor. */
  readonly files: AsyncIterable<OvaFile> | Iterable<OvaFile>;
  /** Seconds since 1970, for all files. Default: 0, so that equal machines give equal files. */
  readonly modifiedSeconds?: number;
}

/** Throws if a file does not have the announced size; the archive is then unusable. */
export function writeOva({ modifiedSeconds = 0, ...ova }: OvaContent): AsyncGenerator<Uint8Array> {
  return writeTar(ovaEntries(ova), { modifiedSeconds });
}

async function* ovaEntries({ name, descriptor, files }: OvaContent): AsyncGenerator<TarContent> {
  const digests = new Map<string, string>();
  const [ovf, mf] = [`${name}.ovf`, `${name}.mf`];
  yield withDigest(tarFile(ovf, descriptor), digests);
  for await (const file of files) {
    invariant(file.name !== mf && !digests.has(file.name), `"${file.name}" appears once in the OVA`);
    yield withDigest(file, digests);
  }
  yield tarFile(mf, printManifest(digests));
}

/** Returns the file with content that adds its digest when it has been read. */
function withDigest(file: OvaFile, digests: Map<string, string>): TarContent {
  const hash = createHash('sha256');
  async function* hashed() {
    for await (const piece of file.content) {
      hash.update(piece);
      yield piece;
    }
    digests.set(file.name, hash.digest('hex'));
  }
  return { ...file, content: hashed() };
}
