/**
 * Reads OVAs as a stream: the descriptor first, then the files. The content of a file is verified only when the whole
 * archive has been read without an error, because the manifest may come last.
 */
import { createHash, type Hash } from 'node:crypto';
import { FileFormatError } from '#formats/findings.ts';
import { parseManifest, type DigestAlgorithm, type Manifest } from '#formats/ova/manifest.ts';
import { TAR_LIMITS, readTar, readWhole, type TarFile, type TarLimits } from '#lib/tar/read-tar.ts';
import { TarError } from '#lib/tar/tar-header.ts';
import { XML_LIMITS } from '#lib/xml/xml-scan.ts';
import { quoteText } from '#lib/text/quote-text.ts';

type OvaPart =
  | { readonly kind: 'descriptor'; readonly name: string; readonly content: Uint8Array }
  /** Must be read before the next part is requested; the rest is skipped. */
  | { readonly kind: 'file'; readonly name: string; readonly size: number; readonly content: AsyncIterable<Uint8Array> }
  | { readonly kind: 'note'; readonly text: string };

const MAX_MANIFEST = 1024 * 1024;

interface FileDigest {
  readonly algorithm: DigestAlgorithm;
  readonly hex: string;
}

/** Throws a FileFormatError if the archive is damaged, hostile, or does not match its manifest. */
export async function* readOva(
  chunks: AsyncIterable<Uint8Array>,
  limits: TarLimits = TAR_LIMITS,
): AsyncGenerator<OvaPart, void, undefined> {
  try {
    yield* readParts(chunks, limits);
  } catch (error) {
    throw asFormatError(error);
  }
}

async function* readParts(chunks: AsyncIterable<Uint8Array>, limits: TarLimits): AsyncGenerator<OvaPart> {
  const seen = new Map<string, readonly FileDigest[]>();
  let manifest: Manifest | undefined;
  let isFirst = true;
  for await (const file of readTar(chunks, limits)) {
    if (isFirst) {
      isFirst = false;
      const content = await readDescriptor(file);
      seen.set(
        file.name,
        (['sha1', 'sha256', 'sha512'] as const).map((algorithm) => computeDigest(algorithm, content)),
      );
      yield { kind: 'descriptor', name: file.name, content };
    } else if (file.name.endsWith('.mf')) {
      if (manifest !== undefined) throw new FileFormatError('read OVA', ['there are two manifests']);
      manifest = parseManifest(await readWhole(file, MAX_MANIFEST));
    } else if (file.name.endsWith('.cert')) {
      yield { kind: 'note', text: `the signature ${quoteText(file.name)} is not checked` };
    } else if (file.name.endsWith('.ovf')) {
      throw new FileFormatError('read OVA', ['there are two descriptors']);
    } else {
      const algorithm = manifest?.get(file.name)?.algorithm ?? 'sha256';
      const hash = createHash(algorithm);
      const content = withHash(file.content, hash);
      yield { kind: 'file', name: file.name, size: file.size, content };
      for await (const skipped of content) void skipped;
      seen.set(file.name, [{ algorithm, hex: hash.digest('hex') }]);
    }
  }
  if (isFirst) throw new FileFormatError('read OVA', ['it is empty']);
  if (manifest !== undefined) checkManifest(manifest, seen);
}

function asFormatError(error: unknown): unknown {
  return error instanceof TarError ? new FileFormatError('read OVA', [error.message], { cause: error }) : error;
}

async function readDescriptor(file: TarFile): Promise<Buffer> {
  if (!file.name.endsWith('.ovf')) {
    throw new FileFormatError('read OVA', [`it begins with ${quoteText(file.name)}; expected its descriptor (.ovf)`]);
  }
  return await readWhole(file, XML_LIMITS.bytes);
}

function computeDigest(algorithm: DigestAlgorithm, content: Uint8Array): FileDigest {
  return { algorithm, hex: createHash(algorithm).update(content).digest('hex') };
}

/** Adds each byte to the hash once, even if the content is iterated several times. */
function withHash(content: AsyncIterable<Uint8Array>, hash: Hash): AsyncIterable<Uint8Array> {
  const pieces = content[Symbol.asyncIterator]();
  const next = async (): Promise<IteratorResult<Uint8Array, undefined>> => {
    const { done, value } = await pieces.next().catch((error: unknown) => Promise.reject(asFormatError(error)));
    if (done === true) return { done: true, value: undefined };
    hash.update(value);
    return { done: false, value };
  };
  return { [Symbol.asyncIterator]: () => ({ next }) };
}

function checkManifest(manifest: Manifest, seen: ReadonlyMap<string, readonly FileDigest[]>): void {
  const errors: string[] = [];
  for (const [name, { algorithm, hex }] of manifest) {
    const files = seen.get(name);
    const found = files?.find((digest) => digest.algorithm === algorithm);
    if (files === undefined) errors.push(`the manifest names ${quoteText(name)}, which is missing`);
    else if (found === undefined)
      errors.push(`the manifest comes last and has ${algorithm} of ${quoteText(name)}; expected sha256`);
    else if (found.hex !== hex)
      errors.push(`${quoteText(name)} does not match the manifest: its ${algorithm} is ${found.hex}`);
  }
  for (const name of seen.keys()) if (!manifest.has(name)) errors.push(`the manifest does not name ${quoteText(name)}`);
  if (errors.length > 0) throw new FileFormatError('read OVA', errors);
}
