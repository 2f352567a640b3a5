/**
 * The state in a volume of ours as an archive, and a volume filled from one. Of a block volume that a guest has, the
 * mount of its domain is read; of one that nobody has, a mount that is made for the moment, as if for a domain: whoever
 * is killed meanwhile leaves it to releaseUnwanted. A block volume is filled without any.
 */
import { constants } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import { newUid } from '#lib/ids.ts';
import { Directory, isErrorWithCode } from './directory.ts';
import { PRIVATE_FILE } from './disk-image.ts';
import { removeDomainFiles } from './domain-files.ts';
import { detachLoops } from './loop-device.ts';
import { readMounts } from './mounts.ts';
import { ownDirectory, PASSABLE, type OwnPlace } from './persistent-volume.ts';
import type { StateFile } from './state-archive.ts';
import { packState, unpackState } from './state-archive-files.ts';
import { MAX_BYTES } from './state-file-system.ts';
import { MOUNTS_DIR, prepareState, releaseState } from './state-volume.ts';
import { STATE_DIR } from './volume-place.ts';
import type { VolumesHost } from './volumes-host.ts';

const { O_CREAT, O_EXCL, O_RDWR } = constants;

const NODE_CHARACTERS = 200;

/** `domainId`: whose guest has the volume now; undefined where nobody has. */
export async function packVolume(
  volume: PersistentVolume,
  place: OwnPlace,
  domainId: string | undefined,
  host: VolumesHost,
): Promise<Buffer> {
  await using directory = await ownDirectory(place);
  if (!place.block) {
    await using state = await directory.child(STATE_DIR);
    return await packState(state);
  }
  if (domainId === undefined) return await withMount(volume, directory, host);
  await using root = await mountOf(domainId, directory, host);
  await using state = await root.child(STATE_DIR);
  return await packState(state);
}

async function withMount(volume: PersistentVolume, directory: Directory, host: VolumesHost): Promise<Buffer> {
  const domainId = newUid();
  try {
    const prepared = await prepareState(volume, { domainId, hasEnded: () => false }, host);
    if (prepared.is !== 'ready') throw new Error(prepared.message);
    await using state = await Directory.open(prepared.directory);
    if (state === undefined) throw new Error(`Cannot read "${prepared.directory}": it went away`);
    return await packState(state);
  } finally {
    await releaseState(domainId, host);
    await detachLoops({ domainId, nodeName: host.nodeName }, [dirname(directory.path)], host.run);
    await removeDomainFiles(host, domainId);
  }
}

/** Only where it is the volume that is mounted there. */
async function mountOf(domainId: string, directory: Directory, { nodeDir }: VolumesHost): Promise<Directory> {
  const path = join(nodeDir, MOUNTS_DIR, domainId);
  const mount = (await readMounts()).findLast(({ target }) => target === path);
  const image = mount && (await readFile(`/sys/dev/block/${mount.device}/loop/backing_file`, 'utf8').catch(() => ''));
  const root = image && dirname(image.trimEnd()) === directory.path ? await Directory.open(path) : undefined;
  if (root !== undefined) return root;
  throw new Error(`Cannot read the state in "${directory.path}": its guest does not have it mounted`);
}

/**
 * Of a volume of files: `state/` appears with all that is in it. False where it is there already: it stays, unless it is
 * to be replaced.
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
      await using state = await directory.makeChild(unfinished, PASSABLE);
      await unpackState(files, state, host.guestUser);
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

/** Of a block volume: the image `name` with a file system that has the state in it. */
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
      await using root = await directory.makeChild(content, PASSABLE);
      await using state = await root.makeChild(STATE_DIR, PASSABLE);
      await unpackState(files, state, host.guestUser);
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
