/** emptyDisk: a new one for each domain, and a new one at each node to which that goes. */
import { domainDirectory } from './domain-files.ts';
import { ensureImage } from './disk-image.ts';
import type { Prepared, VolumesHost } from './volumes-host.ts';

export async function prepareEmptyDisk(
  { name, bytes, anew = false }: { name: string; bytes: number; anew?: boolean },
  domainId: string,
  host: VolumesHost,
): Promise<Prepared> {
  await using directory = await domainDirectory(host, domainId);
  const file = `${name}.img`;
  if (anew) await directory.unlink(file);
  const image = await ensureImage(directory, { name: file, createBytes: bytes, alwaysRaw: true }, host);
  if (image.is !== 'ready') return image;
  return { is: 'ready', volume: { source: image.source, readonly: false, cacheNone: image.cacheNone } };
}
