/**
 * Block devices made of image files. Each domain has its own device for each of its volumes, and the kernel is the only
 * one that remembers: a domain's device stands on a second name of the image beside it, `<volume>_<domain id>.<node>.block`,
 * and the kernel tells for each device on which name it stands. So nothing is lost when we are killed at any point, and a
 * volume that two domains or two nodes share is let go by one without the other noticing. Only root may do this.
 */
import { chown, link, readdir, readFile, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { Directory } from './directory.ts';
import type { RunCommand } from './run-command.ts';

const SUFFIX = '.block';
const DEVICE = /^loop\d{1,5}$/;
/** A second in all: longer is somebody who has it for good, and gets to keep it. */
const LET_GO_TRIES = 40;
const LET_GO_PAUSE_MS = 25;

/** Whose devices: a domain on a node. */
export interface LoopOwner {
  readonly domainId: string;
  readonly nodeName: string;
}

/** Which one of them: by the name of the volume in the instance. */
export interface LoopUse extends LoopOwner {
  readonly volume: string;
}

interface LoopDevice {
  /** /dev/loop3 */
  readonly path: string;
  readonly backingFile: string;
}

function nameOf({ domainId, nodeName, volume }: LoopUse): string {
  return `${volume}_${ownerSuffix({ domainId, nodeName })}`;
}

function ownerSuffix({ domainId, nodeName }: LoopOwner): string {
  return `${domainId}.${nodeName}${SUFFIX}`;
}

/** Undefined for whatever is not of that node. Ids have no dots, volumes no underscores; guests of old have no volume. */
function domainOf(name: string, nodeName: string): string | undefined {
  const owner = name.slice(name.indexOf('_') + 1);
  const domainId = owner.slice(0, Math.max(0, owner.indexOf('.')));
  return domainId !== '' && owner === ownerSuffix({ domainId, nodeName }) ? domainId : undefined;
}

/** The device of this domain over the image; the same one when asked again, as large as the image is now. */
export async function attachLoop(
  directory: Directory,
  image: string,
  use: LoopUse,
  { run, readonly }: { run: RunCommand; readonly: boolean },
): Promise<string> {
  const name = join(directory.path, nameOf(use));
  const attached = (await loopDevices()).find(({ backingFile }) => backingFile === name);
  if (attached !== undefined) {
    await run('losetup', ['--set-capacity', attached.path]);
    return attached.path;
  }
  // A name without a device may be of an image that has been replaced since.
  await rm(name, { force: true });
  await link(join(directory.path, image), name);
  const { stdout } = await run('losetup', ['--find', '--show', ...(readonly ? ['--read-only'] : []), name]);
  const path = stdout.trim();
  if (!/^\/dev\/loop\d+$/.test(path))
    throw new Error(`Cannot attach "${name}": losetup answered ${stdout.slice(0, 100)}`);
  return path;
}

/** Whether the block device is the volume of a domain, of whatever node. */
export async function isVolumeDevice(path: string): Promise<boolean> {
  const { backingFile = '' } = (await loopDevices()).find((device) => device.path === path) ?? {};
  return backingFile.endsWith(SUFFIX);
}

interface LoopUser {
  readonly domainId: string;
  readonly readonly: boolean;
  /** Of the device's name of the image. */
  readonly name: string;
}

/**
 * Who else of the node has a device over the same image: other domains, and this one under another name. The same domain
 * on another node is no other guest: it moves, and its hypervisors see to it that one of them writes.
 */
export async function usersBeside(directory: Directory, use: LoopUse): Promise<LoopUser[]> {
  const own = new Set([nameOf(use), ownerSuffix(use)]);
  return (await loopUsers(directory, use.nodeName)).filter(({ name }) => !own.has(name));
}

/** Every domain of the node that has a device over the image in this directory. */
export async function loopUsers({ path: image }: Directory, nodeName: string): Promise<LoopUser[]> {
  const users = [];
  for (const { path, backingFile } of await loopDevices()) {
    const name = basename(backingFile);
    const domainId = dirname(backingFile) === image ? domainOf(name, nodeName) : undefined;
    if (domainId === undefined) continue;
    const readonly = (await readFile(`/sys/block/${basename(path)}/ro`, 'utf8').catch(() => '')).trim() === '1';
    users.push({ domainId, readonly, name });
  }
  return users;
}

/** Detaches the devices of the domain on volumes in these directories, or the one. Fine where there is none. */
export async function detachLoops(
  owner: LoopOwner | LoopUse,
  volumeDirs: readonly string[],
  run: RunCommand,
): Promise<void> {
  const isMeant = (name: string) =>
    'volume' in owner ? name === nameOf(owner) : domainOf(name, owner.nodeName) === owner.domainId;
  for (const device of await loopDevices()) {
    if (isMeant(basename(device.backingFile)) && isBelow(device, volumeDirs)) await detach(device, run);
  }
}

/** The same for every domain of the node that is not wanted, with the names that are left of devices that are gone. */
export async function detachUnwanted(
  nodeName: string,
  isWanted: (domainId: string) => boolean,
  volumeDirs: readonly string[],
  run: RunCommand,
): Promise<void> {
  const isLeft = (name: string) => {
    const domainId = domainOf(name, nodeName);
    return domainId !== undefined && !isWanted(domainId);
  };
  for (const device of await loopDevices()) {
    if (isLeft(basename(device.backingFile)) && isBelow(device, volumeDirs)) await detach(device, run);
  }
  for (const volume of (await Promise.all(volumeDirs.map(directoriesIn))).flat()) {
    for (const name of await readdir(volume)) if (isLeft(name)) await rm(join(volume, name), { force: true });
  }
}

function isBelow({ backingFile }: LoopDevice, volumeDirs: readonly string[]): boolean {
  return volumeDirs.includes(dirname(dirname(backingFile)));
}

async function detach({ path, backingFile }: LoopDevice, run: RunCommand): Promise<void> {
  // The kernel uses the device again for anybody's file.
  const { gid } = await stat(path);
  await chown(path, 0, gid);
  await run('losetup', ['--detach', path]);
  await letGo(path, backingFile);
  await rm(backingFile, { force: true });
}

/** While others have the device open, udev that looks at it for instance, the kernel only remembers that it is to go. */
async function letGo(path: string, backingFile: string): Promise<void> {
  for (let tries = 0; tries < LET_GO_TRIES; tries++) {
    const attached = (await loopDevices()).some((device) => device.path === path && device.backingFile === backingFile);
    if (!attached) return;
    await setTimeout(LET_GO_PAUSE_MS);
  }
}

async function directoriesIn(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(path, name));
}

/** Tells the devices over an image that it has grown. */
export async function growLoops(directory: string, run: RunCommand): Promise<void> {
  const own = (await loopDevices()).filter(
    ({ backingFile }) => backingFile.endsWith(SUFFIX) && dirname(backingFile) === directory,
  );
  for (const { path } of own) await run('losetup', ['--set-capacity', path]);
}

async function loopDevices(): Promise<LoopDevice[]> {
  const names = await readdir('/sys/block').catch(() => []);
  const found = await Promise.all(
    names
      .filter((name) => DEVICE.test(name))
      .map(async (name) => {
        const told = await readFile(`/sys/block/${name}/loop/backing_file`, 'utf8').catch(() => undefined);
        // The kernel says so of a name that is gone: the data of the volume were removed before its device.
        const backingFile = told?.trimEnd().replace(/ \(deleted\)$/, '');
        return backingFile === undefined ? undefined : { path: `/dev/${name}`, backingFile };
      }),
  );
  return found.filter((device) => device !== undefined);
}
