/**
 * Packs the persistent state of a volume into an archive, and fills a volume from one. A block volume that a guest uses
 * is read through the mount of its domain. An unused one is mounted temporarily, as if for a domain; if the agent is
 * killed meanwhile, releaseUnwanted removes that mount. Filling a block volume needs no mount.
 */
import { constants } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import { newUid } from '#lib/ids.ts';
import { Directory, isErrorWithCode } from '#node/volumes/local/mounts/directory.ts';
import { PRIVATE_FILE } from '#node/volumes/local/content/disk-image.ts';
import { removeDomainFiles } from '#node/volumes/local/kinds/domain-files.ts';
import { detachLoops } from '#node/volumes/local/mounts/loop-device.ts';
import { readMounts } from '#lib/mounts.ts';
import { openOwnDirectory, TRAVERSE_ONLY, type OwnPlace } from '#node/volumes/local/kinds/persistent-volume.ts';
import type { StateFile } from '#node/volumes/local/state/state-archive.ts';
import { packState, unpackState } from '#node/volumes/local/state/state-archive-files.ts';
import { MAX_BYTES } from '#node/volumes/local/state/state-file-system.ts';
import { MOUNTS_DIR, prepareState, releaseStateVolume } from '#node/volumes/local/state/state-volume.ts';
import { STATE_DIR } from '#node/volumes/local/volume-place.ts';
import type { VolumesHost } from '#node/volumes/local/volumes-host.ts';

const { O_CREAT, O_EXCL, O_RDWR } = constants;

const NODE_CHARACTERS = 200;

/** Packs the state. `domainId` is the domain that uses the volume now; undefined if none does. */
export async function packVolume(
  volume: PersistentVolume,
  place: OwnPlace,
  domainId: string | undefined,
  host: VolumesHost,
): Promise<Buffer> {
  await using directory = await openOwnDirectory(place);
  if (!place.block) {
    await using state = await directory.child(STATE_DIR);
    return await packState(state);
  }
  if (domainId === undefined) return await packWithMount(volume, directory, host);
  await using root = await openMount(domainId, directory, host);
  await using state = await root.child(STATE_DIR);
  return await packState(state);
}

async function packWithMount(volume: PersistentVolume, directory: Directory, host: VolumesHost): Promise<Buffer> {
  const domainId = newUid();
  try {
    const prepared = await prepareState(volume, { domainId, hasEnded: () => false }, host);
    if (prepared.is !== 'ready') throw new Error(prepared.message);
    await using state = await Directory.open(prepared.directory);
    if (state === undefined) throw new Error(`Cannot read "${prepared.directory}": it was removed meanwhile`);
    return await packState(state);
  } finally {
    await releaseStateVolume(domainId, host);
    await detachLoops({ domainId, nodeName: host.nodeName }, [dirname(directory.path)], host.run);
    await removeDomainFiles(host, domainId);
  }
}

/** Opens the mount of the domain. Throws if another volume, or none, is mounted there. */
async function openMount(domainId: string, directory: Directory, { nodeDir }: VolumesHost): Promise<Directory> {
  const path = join(nodeDir, MOUNTS_DIR, domainId);
  const mount = (await readMounts()).findLast(({ target }) => target === path);
  const image = mount && (await readFile(`/sys/dev/block/${mount.device}/loop/backing_file`, 'utf8').catch(() => ''));
  const root = image && dirname(image.trimEnd()) === directory.path ? await Directory.open(path) : undefined;
  if (root !== undefined) return root;
  throw new Error(`Cannot read the state in "${directory.path}": it is not mounted for its guest`);
}

/**
 * Installs `state/` in a volume of mode Filesystem, complete from the beginning. Returns false, without a change, if it
 * exists and is not to be replaced.
 */
export async function installState(
  directory: Directory,
  files: readonly StateFile[],
  { host, replace }: { readonly host: VolumesHost; readonly replace: boolean },
): Promise<boolean> {
  const unfinished = `${STATE_DIR}.${host.nodeName.slice(0, NODE_CHARACTERS)}.new`;
  await directory.removeTree(unfinished);
  try {
    {
      await using state = await directory.makeChild(unfinished, TRAVERSE_ONLY);
      await unpackState(files, state);
    }
    if (replace) await directory.removeTree(STATE_DIR);
    await directory.rename(unfinished, STATE_DIR);
    await directory.sync();
    return true;
  } catch (error) {
    if (isErrorWithCode(error, 'ENOTEMPTY', 'EEXIST')) return false;
    throw error;
  } finally {
    await directory.removeTree(unfinished);
  }
}

/** Creates the image `name` for a block volume: a file system that contains the state. */
export async function makeStateImage(
  directory: Directory,
  name: string,
  files: readonly StateFile[],
  { place, host }: { readonly place: OwnPlace; readonly host: VolumesHost },
): Promise<void> {
  const content = `${name}.content`;
  await directory.removeTree(content);
  try {
    {
      await using root = await directory.makeChild(content, TRAVERSE_ONLY);
      await using state = await root.makeChild(STATE_DIR, TRAVERSE_ONLY);
      await unpackState(files, state);
      await using image = await directory.open(name, O_RDWR | O_CREAT | O_EXCL, PRIVATE_FILE);
      await image?.truncate(Math.min(place.bytes, MAX_BYTES));
    }
    const features = place.root === host.sharedDir ? ['-O', 'mmp'] : [];
    const [from, to] = [join(directory.path, content), join(directory.path, name)];
    await host.run('mkfs.ext4', ['-q', '-F', '-m', '0', ...features, '-d', from, to]);
  } finally {
    await directory.removeTree(content);
  }
}
