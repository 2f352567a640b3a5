/** The state in a volume of ours, out and in, as disk-content.ts has it for disks: what goes by is an archive of it. */
import type { DiskHeader } from '#api/disk-stream.ts';
import { MAX_STATE_ARCHIVE_BYTES } from '#api/snapshot-state.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import type { DiskContent } from '#node/volumes-port.ts';
import { install, readyPlace } from './disk-content.ts';
import { ownDirectory } from './persistent-volume.ts';
import { parseArchive } from './state-archive.ts';
import { installState, makeStateImage, packVolume } from './state-archive-volume.ts';
import { DISK_IMAGE } from './volume-place.ts';
import type { VolumesHost } from './volumes-host.ts';

const UPLOADED = `${DISK_IMAGE}.upload`;

/** Throws where it cannot be read. */
export async function openState(volume: PersistentVolume, host: VolumesHost): Promise<DiskContent> {
  const archive = await packVolume(volume, await readyPlace(volume, host), undefined, host);
  return {
    header: { size: archive.length, format: 'raw', virtualSize: archive.length },
    async *chunks() {
      yield archive;
    },
    close: async () => {},
  };
}

/** The volume has the state when it resolves, on disk; where it throws, it has none, or what it had. */
export async function replaceState(
  volume: PersistentVolume,
  header: DiskHeader,
  chunks: AsyncIterable<Buffer>,
  host: VolumesHost,
  { signal }: { readonly signal: AbortSignal | undefined },
): Promise<void> {
  const place = await readyPlace(volume, host);
  const files = parseArchive(await whole(volume, header, chunks, signal));
  await using directory = await ownDirectory(place);
  if (!place.block) {
    await installState(directory, files, { host, replace: true });
    return;
  }
  await directory.unlink(UPLOADED);
  try {
    await makeStateImage(directory, UPLOADED, files, { place, host });
    signal?.throwIfAborted();
    await install(directory, UPLOADED, place, host);
  } finally {
    await directory.unlink(UPLOADED);
  }
}

async function whole(
  { metadata }: PersistentVolume,
  { size }: DiskHeader,
  chunks: AsyncIterable<Buffer>,
  signal: AbortSignal | undefined,
): Promise<Buffer> {
  const cannot = `Cannot fill PersistentVolume "${metadata.name}" with state`;
  if (size > MAX_STATE_ARCHIVE_BYTES)
    throw new Error(`${cannot}: it has ${size} bytes; expected ${MAX_STATE_ARCHIVE_BYTES} or less`);
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    signal?.throwIfAborted();
    bytes += chunk.length;
    if (bytes > size) break;
    pieces.push(chunk);
  }
  if (bytes !== size) throw new Error(`${cannot}: ${bytes} bytes came; expected ${size}`);
  return Buffer.concat(pieces);
}
