/** Mounts NFS volumes when they are first needed. They stay mounted, and the kernel keeps track of them. */
import { mkdir } from 'node:fs/promises';
import { readMounts, type Mount } from '#lib/mounts.ts';
import type { VolumePlace } from '#node/volumes/local/volume-place.ts';
import { failedRefusal, type VolumeRefusal, type VolumesHost } from '#node/volumes/local/volumes-host.ts';

const TRAVERSE_ONLY = 0o711;

type NfsSource = NonNullable<Extract<VolumePlace, { is: 'directory' }>['mount']>;

/**
 * Mounts the directory if it is an NFS volume and is not mounted yet. Throws if mount fails, which may be temporary.
 */
export async function mountNfs(
  { path, mount }: Extract<VolumePlace, { is: 'directory' }>,
  { isRoot, run }: Pick<VolumesHost, 'isRoot' | 'run'>,
  mounts: () => Promise<readonly Mount[]> = readMounts,
): Promise<VolumeRefusal | undefined> {
  if (mount === undefined) return undefined;
  if (!isRoot) {
    return failedRefusal(
      'VolumeUnsupported',
      `Cannot mount "${mount.source}": the agent does not run as root; use volumes of selfsame.io/local`,
    );
  }
  // Several guests may need it at the same time; a second mount would stay on top of the first.
  const underWay = mountsUnderWay.get(path);
  const mounting = underWay ?? mountOnce(path, mount, run, mounts).finally(() => mountsUnderWay.delete(path));
  mountsUnderWay.set(path, mounting);
  await mounting;
  return undefined;
}

const mountsUnderWay = new Map<string, Promise<void>>();

async function mountOnce(
  path: string,
  { source, options }: NfsSource,
  run: VolumesHost['run'],
  mounts: () => Promise<readonly Mount[]>,
): Promise<void> {
  await mkdir(path, { recursive: true, mode: TRAVERSE_ONLY });
  if ((await mounts()).some(({ target }) => target === path)) return;
  await run('mount', ['-t', 'nfs', ...(options.length === 0 ? [] : ['-o', options.join(',')]), source, path]);
}
