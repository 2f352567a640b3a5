/** Volumes of other machines: mounted where they are needed first, and left so; the kernel remembers which are. */
import { mkdir } from 'node:fs/promises';
import { readMounts, type Mount } from './mounts.ts';
import type { VolumePlace } from './volume-place.ts';
import { failed, type Refusal, type VolumesHost } from './volumes-host.ts';

const PASSABLE = 0o711;

type Mounting = NonNullable<Extract<VolumePlace, { is: 'directory' }>['mount']>;

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
  // Several guests may want it at the same time; a second mount would lie over the first for ever.
  const others = MOUNTING.get(path);
  const mounted = others ?? mountOnce(path, mount, run, mounts).finally(() => MOUNTING.delete(path));
  MOUNTING.set(path, mounted);
  await mounted;
  return undefined;
}

const MOUNTING = new Map<string, Promise<void>>();

async function mountOnce(
  path: string,
  { source, options }: Mounting,
  run: VolumesHost['run'],
  mounts: () => Promise<readonly Mount[]>,
): Promise<void> {
  await mkdir(path, { recursive: true, mode: PASSABLE });
  if ((await mounts()).some(({ target }) => target === path)) return;
  await run('mount', ['-t', 'nfs', ...(options.length === 0 ? [] : ['-o', options.join(',')]), source, path]);
}
