/** ephemeral: a layer over a claim that takes all writes, and is gone with its domain. */
import { dirname, join, relative } from 'node:path';
import type { DiskSource } from '#node/definition/domain-definition.ts';
import { giveTo } from './disk-image.ts';
import { domainDirectory } from './domain-files.ts';
import type { Prepared, VolumesHost } from './volumes-host.ts';
import { constants } from 'node:fs';

const { O_RDWR } = constants;

export interface OverlayWish {
  readonly name: string;
  readonly base: DiskSource;
  readonly cacheNone: boolean;
  /** A new one, this large, in place of any that is there: what is above the base comes from another node. */
  readonly anewBytes?: number;
}

export async function prepareOverlay(
  { name, base, cacheNone, anewBytes }: OverlayWish,
  domainId: string,
  host: VolumesHost,
): Promise<Prepared> {
  await using directory = await domainDirectory(host, domainId);
  const file = `${name}.qcow2`;
  const path = join(directory.path, file);
  if (anewBytes !== undefined) await directory.unlink(file);
  await using found = await directory.open(file, O_RDWR);
  if (found === undefined) {
    // Under another name until it is whole; the guest keeps what it wrote when we are asked again.
    const temporary = `${file}.new`;
    await directory.unlink(temporary);
    const args = ['create', '-q', '-f', 'qcow2', '-F', base.format, '-b', backingName(path, base.path)];
    const size = anewBytes === undefined ? [] : [String(anewBytes)];
    await host.run('qemu-img', [...args, join(directory.path, temporary), ...size]);
    await using made = await directory.open(temporary, O_RDWR);
    if (made === undefined) throw new Error(`Cannot make overlay "${path}": qemu-img left none`);
    await giveTo(made, host.guestUser);
    await directory.rename(temporary, file);
  }
  return { is: 'ready', volume: { source: { path, format: 'qcow2' }, readonly: false, cacheNone } };
}

/** Relative, because QEMU may not pass every directory above ours; devices are where they are. */
function backingName(overlay: string, base: string): string {
  return base.startsWith('/dev/') ? base : relative(dirname(overlay), base);
}
