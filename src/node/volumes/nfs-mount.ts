/** Volumes of other machines: mounted where they are needed first, and left so; the kernel remembers which are. */
import { mkdir } from 'node:fs/promises';
import { readMounts, type Mount } from './mounts.ts';
import type { VolumePlace } from './volume-place.ts';
import { failed, type Refusal, type VolumesHost } from './volumes-host.ts';

const PASSABLE = 0o711;

/** Undefined = it is there, or nothing has to be mounted. Throws what mount says: it may be better later. */
export async function mountPlace(
  { path, mount }: Extract<VolumePlace, { is: 'directory' }>,
  { isRoot, run }: Pick<VolumesHost, 'isRoot' | 'run'>,
  mounts: () => Promise<readonly Mount[]> = readMounts,
): Promise<Refusal | undefined> {
  if (mount === undefined) return undefined;
  if (!isRoot) {
    return failed(
      'VolumeUnsupported',
      `Cannot mount "${mount.source}": only root may; use volumes of selfsame.io/local`,
    );
  }
  await mkdir(path, { recursive: true, mode: PASSABLE });
  if ((await mounts()).some(({ target }) => target === path)) return undefined;
  const options = mount.options.length === 0 ? [] : ['-o', mount.options.join(',')];
  await run('mount', ['-t', 'nfs', ...options, mount.source, path]);
  return undefined;
}
