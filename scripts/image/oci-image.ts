/**
 * Writes an OCI image with one layer as a tar archive, without docker. `podman load`, `ctr images import`, `skopeo copy
 * oci-archive:…` and, because of manifest.json, every `docker load` accept it. Equal contents give equal bytes.
 */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdtemp, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { writeTar, type TarEntry } from '#lib/tar/write-tar.ts';

export type ImageEntry =
  | { readonly type: 'directory'; readonly name: string; readonly mode: number }
  /** The content is read from a file of this machine, or given. */
  | { readonly type: 'file'; readonly name: string; readonly mode: number; readonly from: string | Buffer };

export interface ImageOptions {
  /** `selfsame/selfsame:0.1.0`. */
  readonly reference: string;
  /** In Go's names: amd64, arm64. */
  readonly architecture: string;
  /** The container's configuration: Entrypoint, User, Env, WorkingDir, Labels. */
  readonly config: Readonly<Record<string, unknown>>;
  /** The gzip level, 1 to 9. */
  readonly level?: number;
}

interface Blob {
  readonly digest: string;
  readonly size: number;
  readonly from: string | Buffer;
}

const TYPES = {
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar+gzip',
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  index: 'application/vnd.oci.image.index.v1+json',
} as const;

/** Writes the complete image or nothing. Returns the digest of its manifest, by which registries identify it. */
export async function writeImage(out: string, entries: readonly ImageEntry[], options: ImageOptions): Promise<string> {
  const { reference, architecture, config, level = 6 } = options;
  const work = await mkdtemp(join(dirname(out), '.image-'));
  try {
    const { layer, diffId } = await writeLayer(join(work, 'layer'), entries, level);
    const created = '1970-01-01T00:00:00Z';
    const settings = jsonBlob({
      created,
      architecture,
      os: 'linux',
      config,
      rootfs: { type: 'layers', diff_ids: [diffId] },
      history: [{ created, created_by: 'npm run image' }],
    });
    const manifest = jsonBlob({
      schemaVersion: 2,
      mediaType: TYPES.manifest,
      config: descriptor(settings, TYPES.config),
      layers: [descriptor(layer, TYPES.layer)],
    });
    const annotations = {
      'io.containerd.image.name': `docker.io/${reference}`,
      'org.opencontainers.image.ref.name': reference.slice(reference.lastIndexOf(':') + 1),
    };
    const index = {
      schemaVersion: 2,
      mediaType: TYPES.index,
      manifests: [{ ...descriptor(manifest, TYPES.manifest), platform: { architecture, os: 'linux' }, annotations }],
    };
    const dockerManifest = [{ Config: pathOf(settings), RepoTags: [reference], Layers: [pathOf(layer)] }];
    const files = [
      file('oci-layout', json({ imageLayoutVersion: '1.0.0' })),
      file('index.json', json(index)),
      file('manifest.json', json(dockerManifest)),
      directory('blobs'),
      directory('blobs/sha256'),
      ...[settings, manifest, layer].map((blob) => file(pathOf(blob), blob.from)),
    ];
    const imageFile = join(work, 'image');
    await pipeline(writeTar(tarEntries(files)), createWriteStream(imageFile));
    await rename(imageFile, out);
    return manifest.digest;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function writeLayer(path: string, entries: readonly ImageEntry[], level: number) {
  const [plain, packed] = [hashStream(), hashStream()];
  const zip = createGzip({ level });
  await pipeline(writeTar(tarEntries(entries)), plain.pass, zip, packed.pass, createWriteStream(path));
  const { size } = await stat(path);
  return { layer: { digest: packed.digest(), size, from: path }, diffId: plain.digest() };
}

async function* tarEntries(entries: readonly ImageEntry[]): AsyncGenerator<TarEntry> {
  for (const entry of entries) {
    if (entry.type === 'directory') {
      yield entry;
    } else {
      const { name, mode, from } = entry;
      const size = typeof from === 'string' ? (await stat(from)).size : from.length;
      yield { name, mode, size, content: typeof from === 'string' ? createReadStream(from) : [from] };
    }
  }
}

/** Returns a stream that passes data through, and the digest of the data after its end. */
function hashStream() {
  const hash = createHash('sha256');
  const pass = new Transform({
    transform(chunk: Buffer, _, done) {
      hash.update(chunk);
      done(undefined, chunk);
    },
  });
  return { pass, digest: () => `sha256:${hash.digest('hex')}` };
}

function jsonBlob(value: unknown): Blob {
  const from = json(value);
  return { digest: `sha256:${createHash('sha256').update(from).digest('hex')}`, size: from.length, from };
}

const json = (value: unknown) => Buffer.from(JSON.stringify(value));
const pathOf = ({ digest }: Blob) => `blobs/${digest.replace(':', '/')}`;
const descriptor = ({ digest, size }: Blob, mediaType: string) => ({ mediaType, digest, size });
const directory = (name: string): ImageEntry => ({ type: 'directory', name, mode: 0o755 });
const file = (name: string, from: string | Buffer): ImageEntry => ({ type: 'file', name, mode: 0o644, from });
