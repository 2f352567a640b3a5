/**
 * Loop devices for image files. Each domain has its own device for each of its block volumes. The device is attached to
 * a second name of the image, `<volume>_<domain id>.<node>.block`, and the kernel reports that name for each device. So
 * all state is in the kernel: nothing is lost if the agent is killed, and of two domains or nodes that share a volume,
 * one can detach its device without affecting the other. Requires root.
 */
import { chown, link, readdir, readFile, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { Directory } from '#node/volumes/local/mounts/directory.ts';
import type { RunCommand } from '#node/volumes/local/run-command.ts';

const SUFFIX = '.block';
const DEVICE = /^loop\d{1,5}$/;
/** One second in total; a device that is still open then stays. */
const DETACH_TRIES = 40;
const DETACH_PAUSE_MS = 25;

/** The owner of devices: a domain on a node. */
interface LoopOwner {
  readonly domainId: string;
  readonly nodeName: string;
}

/** A single device of an owner, identified by the name of the volume in the instance. */
interface LoopUse extends LoopOwner {
  readonly volume: string;
}

interface LoopDevice {
  /** /dev/loop3 */
  readonly path: string;
  readonly backingFile: string;
}

function loopFileName({ domainId, nodeName, volume }: LoopUse): string {
  return `${volume}_${ownerSuffix({ domainId, nodeName })}`;
}

function ownerSuffix({ domainId, nodeName }: LoopOwner): string {
  return `${domainId}.${nodeName}${SUFFIX}`;
}

/**
 * Returns the domain of a file name, or undefined if the file does not belong to this node. Ids have no dots, volumes
 * no underscores; names of older guests have no volume.
 */
function parseDomainId(name: string, nodeName: string): string | undefined {
  const owner = name.slice(name.indexOf('_') + 1);
  const domainId = owner.slice(0, Math.max(0, owner.indexOf('.')));
  return domainId !== '' && owner === ownerSuffix({ domainId, nodeName }) ? domainId : undefined;
}

/** Returns the domain's device for the image and attaches it if needed. A repeated call updates its size. */
export async function attachLoop(
  directory: Directory,
  image: string,
  use: LoopUse,
  { run, readonly }: { run: RunCommand; readonly: boolean },
): Promise<string> {
  const name = join(directory.path, loopFileName(use));
  const attached = (await listLoopDevices()).find(({ backingFile }) => backingFile === name);
  if (attached !== undefined) {
    await run('losetup', ['--set-capacity', attached.path]);
    return attached.path;
  }
  // A name without a device may belong to an image that was replaced meanwhile.
  await rm(name, { force: true });
  await link(join(directory.path, image), name);
  const { stdout } = await run('losetup', ['--find', '--show', ...(readonly ? ['--read-only'] : []), name]);
  const path = stdout.trim();
  if (!/^\/dev\/loop\d+$/.test(path))
    throw new Error(`Cannot attach "${name}": losetup answered ${stdout.slice(0, 100)}`);
  return path;
}

/** Reports whether the block device is the volume of a domain of any node. */
export async function isVolumeDevice(path: string): Promise<boolean> {
  const { backingFile = '' } = (await listLoopDevices()).find((device) => device.path === path) ?? {};
  return backingFile.endsWith(SUFFIX);
}

interface LoopUser {
  readonly domainId: string;
  readonly readonly: boolean;
  /** The file name of the device. */
  readonly name: string;
}

/**
 * Returns the other users of the same image on this node: other domains, and this one with another volume. The same
 * domain on another node does not count: it is migrating, and the hypervisors ensure that only one of them writes.
 */
export async function findOtherUsers(directory: Directory, use: LoopUse): Promise<LoopUser[]> {
  const own = new Set([loopFileName(use), ownerSuffix(use)]);
  return (await findLoopUsers(directory, use.nodeName)).filter(({ name }) => !own.has(name));
}

/** Returns every domain of the node that has a device for the image in this directory. */
export async function findLoopUsers({ path: image }: Directory, nodeName: string): Promise<LoopUser[]> {
  const users = [];
  for (const { path, backingFile } of await listLoopDevices()) {
    const name = basename(backingFile);
    const domainId = dirname(backingFile) === image ? parseDomainId(name, nodeName) : undefined;
    if (domainId === undefined) continue;
    const readonly = (await readFile(`/sys/block/${basename(path)}/ro`, 'utf8').catch(() => '')).trim() === '1';
    users.push({ domainId, readonly, name });
  }
  return users;
}

/**
 * Detaches all devices of the domain on volumes in these directories, or a single one. Does nothing if there is none.
 */
export async function detachLoops(
  owner: LoopOwner | LoopUse,
  volumeDirs: readonly string[],
  run: RunCommand,
): Promise<void> {
  const isSelected = (name: string) =>
    'volume' in owner ? name === loopFileName(owner) : parseDomainId(name, owner.nodeName) === owner.domainId;
  for (const device of await listLoopDevices()) {
    if (isSelected(basename(device.backingFile)) && isBelow(device, volumeDirs)) await detach(device, run);
  }
}

/** Detaches the devices of every unwanted domain of the node and removes names without a device. */
export async function detachUnwanted(
  nodeName: string,
  isWanted: (domainId: string) => boolean,
  volumeDirs: readonly string[],
  run: RunCommand,
): Promise<void> {
  const isUnwanted = (name: string) => {
    const domainId = parseDomainId(name, nodeName);
    return domainId !== undefined && !isWanted(domainId);
  };
  for (const device of await listLoopDevices()) {
    if (isUnwanted(basename(device.backingFile)) && isBelow(device, volumeDirs)) await detach(device, run);
  }
  for (const volume of (await Promise.all(volumeDirs.map(directoriesIn))).flat()) {
    for (const name of await readdir(volume)) if (isUnwanted(name)) await rm(join(volume, name), { force: true });
  }
}

function isBelow({ backingFile }: LoopDevice, volumeDirs: readonly string[]): boolean {
  return volumeDirs.includes(dirname(dirname(backingFile)));
}

async function detach({ path, backingFile }: LoopDevice, run: RunCommand): Promise<void> {
  // The kernel reuses the device for other files, so it must not stay with the guest user.
  const { gid } = await stat(path);
  await chown(path, 0, gid);
  await run('losetup', ['--detach', path]);
  await waitForDetach(path, backingFile);
  await rm(backingFile, { force: true });
}

/** Waits until the device is detached: while another program has it open, such as udev, the kernel delays that. */
async function waitForDetach(path: string, backingFile: string): Promise<void> {
  for (let tries = 0; tries < DETACH_TRIES; tries++) {
    const attached = (await listLoopDevices()).some(
      (device) => device.path === path && device.backingFile === backingFile,
    );
    if (!attached) return;
    await setTimeout(DETACH_PAUSE_MS);
  }
}

async function directoriesIn(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(path, name));
}

/** Updates the sizes of the devices of an image that has grown. */
export async function updateLoopSizes(directory: string, run: RunCommand): Promise<void> {
  const own = (await listLoopDevices()).filter(
    ({ backingFile }) => backingFile.endsWith(SUFFIX) && dirname(backingFile) === directory,
  );
  for (const { path } of own) await run('losetup', ['--set-capacity', path]);
}

async function listLoopDevices(): Promise<LoopDevice[]> {
  const names = await readdir('/sys/block').catch(() => []);
  const found = await Promise.all(
    names
      .filter((name) => DEVICE.test(name))
      .map(async (name) => {
        const text = await readFile(`/sys/block/${name}/loop/backing_file`, 'utf8').catch(() => undefined);
        // The kernel marks a name that was removed: the data of the volume was removed before its device.
        const backingFile = text?.trimEnd().replace(/ \(deleted\)$/, '');
        return backingFile === undefined ? undefined : { path: `/dev/${name}`, backingFile };
      }),
  );
  return found.filter((device) => device !== undefined);
}
