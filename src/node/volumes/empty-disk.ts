/** emptyDisk: a new one for each domain. */
import { domainDirectory } from './domain-files.ts';
import { ensureImage } from './disk-image.ts';
import { bytesOf, type Prepared, type VolumesHost } from './volumes-host.ts';
import type { IntOrString } from '#kube/schema-dsl.ts';

export async function prepareEmptyDisk(
  { name, capacity }: { name: string; capacity: IntOrString },
  domainId: string,
  host: VolumesHost,
): Promise<Prepared> {
  await using directory = await domainDirectory(host, domainId);
  const bytes = bytesOf(capacity);
  const image = await ensureImage(directory, { name: `${name}.img`, createBytes: bytes, alwaysRaw: true }, host);
  if (image.is !== 'ready') return image;
  return { is: 'ready', volume: { source: image.source, readonly: false, cacheNone: image.cacheNone } };
}
