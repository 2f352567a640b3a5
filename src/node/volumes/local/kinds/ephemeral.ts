/** Prepares ephemeral volumes: an overlay over a claim that receives all writes and is removed with its domain. */
import { dirname, join, relative } from 'node:path';
import type { DiskSource } from '#node/hardware/domain-definition.ts';
import { PRIVATE_FILE } from '#node/volumes/local/content/disk-image.ts';
import { openDomainDirectory } from '#node/volumes/local/kinds/domain-files.ts';
import type { PreparedDisk, VolumesHost } from '#node/volumes/local/volumes-host.ts';
import { constants } from 'node:fs';

const { O_RDWR } = constants;

interface OverlayOptions {
  readonly name: string;
  readonly base: DiskSource;
  readonly cacheNone: boolean;
  /** Creates a new overlay of this size, replacing any existing one, for content that comes from another node. */
  readonly recreateBytes?: number;
}

export async function prepareOverlay(
  { name, base, cacheNone, recreateBytes }: OverlayOptions,
  domainId: string,
  host: VolumesHost,
): Promise<PreparedDisk> {
  await using directory = await openDomainDirectory(host, domainId);
  const file = `${name}.qcow2`;
  const path = join(directory.path, file);
  if (recreateBytes !== undefined) await directory.unlink(file);
  await using found = await directory.open(file, O_RDWR);
  if (found === undefined) {
    // Renamed when it is complete. An existing overlay is kept, because the guest may have written to it.
    const temporary = `${file}.new`;
    await directory.unlink(temporary);
    const args = ['create', '-q', '-f', 'qcow2', '-F', base.format, '-b', backingName(path, base.path)];
    const size = recreateBytes === undefined ? [] : [String(recreateBytes)];
    await host.run('qemu-img', [...args, join(directory.path, temporary), ...size]);
    await using created = await directory.open(temporary, O_RDWR);
    if (created === undefined) throw new Error(`Cannot create overlay "${path}": qemu-img did not create a file`);
    await created.chmod(PRIVATE_FILE);
    await directory.rename(temporary, file);
  }
  return { is: 'ready', volume: { source: { path, format: 'qcow2', base: base.path }, readonly: false, cacheNone } };
}

/** Returns a relative path, because QEMU may not traverse every parent directory; absolute for devices. */
function backingName(overlay: string, base: string): string {
  return base.startsWith('/dev/') ? base : relative(dirname(overlay), base);
}
