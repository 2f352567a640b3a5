/** Reads and replaces the persistent state in a volume as an archive; disk-content.ts does the same for disks. */
import type { DiskHeader } from '#api/storage/disk-stream.ts';
import { MAX_STATE_ARCHIVE_BYTES } from '#api/storage/snapshot-state.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import type { DiskContent } from '#node/volumes/volumes-port.ts';
import { installImage, findReadyPlace } from '#node/volumes/local/content/disk-content.ts';
import { openOwnDirectory } from '#node/volumes/local/kinds/persistent-volume.ts';
import { parseArchive } from '#node/volumes/local/state/state-archive.ts';
import { installState, makeStateImage, packVolume } from '#node/volumes/local/state/state-archive-volume.ts';
import { DISK_IMAGE } from '#node/volumes/local/volume-place.ts';
import type { VolumesHost } from '#node/volumes/local/volumes-host.ts';

const UPLOADED = `${DISK_IMAGE}.upload`;

/** Opens the state for reading. Throws if that is not possible. */
export async function openState(volume: PersistentVolume, host: VolumesHost): Promise<DiskContent> {
  const archive = await packVolume(volume, await findReadyPlace(volume, host), undefined, host);
  return {
    header: { size: archive.length, format: 'raw', virtualSize: archive.length },
    async *chunks() {
      yield archive;
    },
    close: async () => {},
  };
}

/** Replaces the state, durably. If it throws, the volume has its previous state or none. */
export async function replaceState(
  volume: PersistentVolume,
  header: DiskHeader,
  chunks: AsyncIterable<Buffer>,
  host: VolumesHost,
  { signal }: { readonly signal: AbortSignal | undefined },
): Promise<void> {
  const place = await findReadyPlace(volume, host);
  const files = parseArchive(await readAll(volume, header, chunks, signal));
  await using directory = await openOwnDirectory(place);
  if (!place.block) {
    await installState(directory, files, { host, replace: true });
    return;
  }
  await directory.unlink(UPLOADED);
  try {
    await makeStateImage(directory, UPLOADED, files, { place, host });
    signal?.throwIfAborted();
    await installImage(directory, UPLOADED, place);
  } finally {
    await directory.unlink(UPLOADED);
  }
}

async function readAll(
  { metadata }: PersistentVolume,
  { size }: DiskHeader,
  chunks: AsyncIterable<Buffer>,
  signal: AbortSignal | undefined,
): Promise<Buffer> {
  const prefix = `Cannot fill PersistentVolume "${metadata.name}" with persistent state`;
  if (size > MAX_STATE_ARCHIVE_BYTES)
    throw new Error(`${prefix}: the archive has ${size} bytes; expected at most ${MAX_STATE_ARCHIVE_BYTES}`);
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    signal?.throwIfAborted();
    bytes += chunk.length;
    if (bytes > size) break;
    pieces.push(chunk);
  }
  if (bytes !== size) throw new Error(`${prefix}: received ${bytes} bytes; expected ${size}`);
  return Buffer.concat(pieces);
}
