/**
 * OVA in: the descriptor first, then the files as they stream by. What was read of a file is to be believed only when the
 * whole archive has been walked to its end without a fault: its manifest may be the last thing in it.
 */
import { createHash, type Hash } from 'node:crypto';
import { FormatError, quoted } from '#formats/faults.ts';
import { parseManifest, type DigestAlgorithm, type Manifest } from '#formats/ova/manifest.ts';
import { TAR_LIMITS, readTar, type TarFile, type TarLimits } from '#formats/ova/read-tar.ts';
import { XML_LIMITS } from '#lib/xml-scan.ts';

export type OvaPart =
  | { readonly kind: 'descriptor'; readonly name: string; readonly content: Uint8Array }
  /** To be read before the next part is asked for; what is left is skipped. */
  | { readonly kind: 'file'; readonly name: string; readonly size: number; readonly content: AsyncIterable<Uint8Array> }
  | { readonly kind: 'note'; readonly text: string };

const MAX_MANIFEST = 1024 * 1024;

interface Seen {
  readonly algorithm: DigestAlgorithm;
  readonly hex: string;
}

/** Throws a FormatError for what is damaged, hostile, or does not fit its manifest. */
export async function* readOva(
  chunks: AsyncIterable<Uint8Array>,
  limits: TarLimits = TAR_LIMITS,
): AsyncGenerator<OvaPart, void, undefined> {
  const seen = new Map<string, readonly Seen[]>();
  let manifest: Manifest | undefined;
  let isFirst = true;
  for await (const file of readTar(chunks, limits)) {
    if (isFirst) {
      isFirst = false;
      const content = await descriptorOf(file);
      seen.set(
        file.name,
        (['sha1', 'sha256', 'sha512'] as const).map((algorithm) => digestOf(algorithm, content)),
      );
      yield { kind: 'descriptor', name: file.name, content };
    } else if (file.name.endsWith('.mf')) {
      if (manifest !== undefined) throw new FormatError('read OVA', ['there are two manifests']);
      manifest = parseManifest(await whole(file, MAX_MANIFEST));
    } else if (file.name.endsWith('.cert')) {
      yield { kind: 'note', text: `the signature ${quoted(file.name)} is not checked` };
    } else if (file.name.endsWith('.ovf')) {
      throw new FormatError('read OVA', ['there are two descriptors']);
    } else {
      const algorithm = manifest?.get(file.name)?.algorithm ?? 'sha256';
      const hash = createHash(algorithm);
      const content = hashed(file.content, hash);
      yield { kind: 'file', name: file.name, size: file.size, content };
      for await (const skipped of content) void skipped;
      seen.set(file.name, [{ algorithm, hex: hash.digest('hex') }]);
    }
  }
  if (isFirst) throw new FormatError('read OVA', ['it is empty']);
  if (manifest !== undefined) checkManifest(manifest, seen);
}

async function descriptorOf(file: TarFile): Promise<Buffer> {
  if (!file.name.endsWith('.ovf')) {
    throw new FormatError('read OVA', [`it begins with ${quoted(file.name)}; expected its descriptor (.ovf)`]);
  }
  return await whole(file, XML_LIMITS.bytes);
}

async function whole({ name, size, content }: TarFile, max: number): Promise<Buffer> {
  if (size > max) throw new FormatError('read OVA', [`${quoted(name)} has ${size} bytes, more than ${max}`]);
  const pieces: Uint8Array[] = [];
  for await (const piece of content) pieces.push(piece);
  return Buffer.concat(pieces);
}

function digestOf(algorithm: DigestAlgorithm, content: Uint8Array): Seen {
  return { algorithm, hex: createHash(algorithm).update(content).digest('hex') };
}

/** Each byte is counted once, however often the content is walked over. */
function hashed(content: AsyncIterable<Uint8Array>, hash: Hash): AsyncIterable<Uint8Array> {
  const pieces = content[Symbol.asyncIterator]();
  const next = async (): Promise<IteratorResult<Uint8Array, undefined>> => {
    const { done, value } = await pieces.next();
    if (done === true) return { done: true, value: undefined };
    hash.update(value);
    return { done: false, value };
  };
  return { [Symbol.asyncIterator]: () => ({ next }) };
}

function checkManifest(manifest: Manifest, seen: ReadonlyMap<string, readonly Seen[]>): void {
  const faults: string[] = [];
  for (const [name, { algorithm, hex }] of manifest) {
    const files = seen.get(name);
    const found = files?.find((digest) => digest.algorithm === algorithm);
    if (files === undefined) faults.push(`the manifest names ${quoted(name)}, which is not there`);
    else if (found === undefined)
      faults.push(`the manifest comes last and has ${algorithm} of ${quoted(name)}; expected sha256`);
    else if (found.hex !== hex)
      faults.push(`${quoted(name)} is not what the manifest says: its ${algorithm} is ${found.hex}`);
  }
  for (const name of seen.keys()) if (!manifest.has(name)) faults.push(`the manifest does not name ${quoted(name)}`);
  if (faults.length > 0) throw new FormatError('read OVA', faults);
}
