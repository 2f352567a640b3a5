/** Prepares emptyDisk volumes: a new disk for each domain, and for each node to which the domain migrates. */
import { openDomainDirectory } from '#node/volumes/local/kinds/domain-files.ts';
import { ensureImage } from '#node/volumes/local/content/disk-image.ts';
import type { PreparedDisk, VolumesHost } from '#node/volumes/local/volumes-host.ts';

export async function prepareEmptyDisk(
  { name, bytes, recreate = false }: { name: string; bytes: number; recreate?: boolean },
  domainId: string,
  host: VolumesHost,
): Promise<PreparedDisk> {
  await using directory = await openDomainDirectory(host, domainId);
  const file = `${name}.img`;
  if (recreate) await directory.unlink(file);
  const image = await ensureImage(directory, { name: file, createBytes: bytes, alwaysRaw: true }, host);
  if (image.is !== 'ready') return image;
  return { is: 'ready', volume: { source: image.source, readonly: false, cacheNone: image.cacheNone } };
}
