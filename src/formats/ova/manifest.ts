/** Parses and prints the manifest of an OVA: one digest per file, `SHA256(disk.img)= 0f3a...`. Pure. */
import { FileFormatError } from '#formats/findings.ts';
import { quoteText } from '#lib/text/quote-text.ts';

export type DigestAlgorithm = 'sha1' | 'sha256' | 'sha512';

interface Digest {
  readonly algorithm: DigestAlgorithm;
  /** In lower case. */
  readonly hex: string;
}

export type Manifest = ReadonlyMap<string, Digest>;

const LINE = /^(SHA1|SHA256|SHA512) ?\((.{1,1024})\) ?= ?([0-9a-fA-F]{40,128})$/;
const LENGTHS: Readonly<Record<DigestAlgorithm, number>> = { sha1: 40, sha256: 64, sha512: 128 };

export function parseManifest(bytes: Uint8Array): Manifest {
  const manifest = new Map<string, Digest>();
  const lines = Buffer.from(bytes).toString('utf8').split(/\r?\n/);
  for (const [i, line] of lines.entries()) {
    if (line.trim() === '') continue;
    const [, word = '', name = '', hex = ''] = LINE.exec(line.trim()) ?? [];
    const algorithm = word.toLowerCase() as DigestAlgorithm;
    if (word === '' || hex.length !== LENGTHS[algorithm]) {
      throw new FileFormatError('read OVA', [`line ${i + 1} of the manifest is not the digest of a file`]);
    }
    if (manifest.has(name)) throw new FileFormatError('read OVA', [`the manifest names ${quoteText(name)} twice`]);
    manifest.set(name, { algorithm, hex: hex.toLowerCase() });
  }
  return manifest;
}

export function printManifest(digests: ReadonlyMap<string, string>): string {
  return [...digests].map(([name, hex]) => `SHA256(${name})= ${hex}\n`).join('');
}
